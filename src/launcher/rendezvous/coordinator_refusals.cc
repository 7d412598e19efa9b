// Launchers that a coordinator does not let take part, and those that cannot.
#include <algorithm>
#include <utility>

#include "rendezvous/admission.h"
#include "rendezvous/coordinator.h"

namespace lrun::launcher {
namespace {

using Kind = LauncherMessage::Kind;

/// How long the nodes of a job that has ended before it began are told so, who may come later.
constexpr Duration kPatienceWithLateOnes(10'000);
/// Strangers may come as often as they like.
constexpr std::size_t kMostNoted = 64;

}  // namespace

void Coordinator::turn_away(LauncherId from, const JoinRecord& record, const Rejection& objection, SteadyTime now) {
  send(from, {.kind = Kind::kRejected, .text = objection.why, .hint = objection.hint}, true);
  note(record, "was turned away: " + objection.why, now);
}

/// Once: to those that wait, who else would only hear that somebody is missing, or where the meeting is held.
void Coordinator::note(const JoinRecord& record, const std::string& what, SteadyTime now) {
  std::string text = "node " + in_words(record) + " " + what;
  if (noted_.size() == kMostNoted || std::find(noted_.begin(), noted_.end(), text) != noted_.end()) return;
  noted_.push_back(std::move(text));
  const bool waits = phase_ == Phase::kMeeting || short_since_;
  std::vector<LauncherId> all = all_launchers();
  if (!waits || all.empty()) return warnings_.push_back(noted_.back());
  progress_ = now;
  sends_.push_back({.to = std::move(all), .message = {.kind = Kind::kWaiting, .text = who_is_there()}});
}

/// What may differ, and may also be a second job that was given the name of the first: said once.
void Coordinator::compare_command(const JoinRecord& record) {
  if (commands_differ_ || launchers_.empty()) return;
  const JoinRecord& other = launchers_.begin()->second.record;
  const std::string difference = difference_of_commands(record, other);
  if (difference.empty()) return;
  commands_differ_ = true;
  warnings_.push_back(difference + ": two jobs that are to be apart have different '--rdzv-id's");
}

/// A job that needs every node waits for nobody else then; nor does one whose meeting is held by that launcher.
void Coordinator::take_failure(LauncherId from, const JoinRecord& record, SteadyTime now) {
  send(from, {.kind = Kind::kEnded}, true);
  const bool is_needed = record.min_nodes == record.max_nodes && times_.spares == 0;
  if (phase_ != Phase::kMeeting || resumed_ || !(is_needed || record.token == own_)) {
    return note(record, "cannot take part: " + record.cannot_start, now);
  }
  failure_ = {.run_name = record.run_name, .report = gather_({record.report}), .until = now + kPatienceWithLateOnes};
  untold_ = std::max(0, record.max_nodes - 1 - static_cast<int>(launchers_.size()));
  dismiss({.kind = Kind::kOver, .text = failure_->report});
}

/// \return true: it was told why its job has ended.
bool Coordinator::shares_failure(LauncherId from, const JoinRecord& record) {
  if (!failure_ || record.run_name != failure_->run_name) return false;
  untold_ = std::max(0, untold_ - 1);
  send(from, {.kind = Kind::kOver, .text = failure_->report}, true);
  return true;
}

/// Its place is taken for as long as the job runs: it would wait for nothing, and end with the code of success.
std::optional<Rejection> Coordinator::objection_to_spare(const Launcher& spare) const {
  if (!spare.record.node_rank) return std::nullopt;
  for (const auto& [id, launcher] : launchers_) {
    if (launcher.in_round && launcher.record.node_rank == spare.record.node_rank) {
      return rank_is_taken(spare.record, launcher.record);
    }
  }
  return std::nullopt;
}

/// One of a node that was started again comes before its earlier launcher is known to be dead.
void Coordinator::look_at_spares(SteadyTime now) {
  look_at_spares_.reset();
  if (phase_ == Phase::kClosed) return;
  if (phase_ != Phase::kRunning || stopped_ || ends_) {
    look_at_spares_ = now + times_.heartbeat;
    return;
  }
  std::vector<std::pair<LauncherId, Rejection>> refused;
  for (const auto& [id, launcher] : launchers_) {
    if (launcher.in_round || launcher.busy) continue;
    const SteadyTime due = launcher.came + kPatienceWithSpares * times_.heartbeat;
    if (now < due) {
      look_at_spares_ = std::min(look_at_spares_.value_or(due), due);
    } else if (const std::optional<Rejection> objection = objection_to_spare(launcher)) {
      refused.emplace_back(id, *objection);
    }
  }
  for (const auto& [id, objection] : refused) turn_away(id, take_away(id).record, objection, now);
}

std::optional<SteadyTime> Coordinator::deadline() const {
  std::optional<SteadyTime> next = next_step();
  const auto sooner = [&next](SteadyTime time) { next = std::min(next.value_or(time), time); };
  if (failure_ && untold_ > 0) sooner(failure_->until);
  if (look_at_spares_ && phase_ != Phase::kClosed) sooner(*look_at_spares_);
  return next;
}

}  // namespace lrun::launcher
