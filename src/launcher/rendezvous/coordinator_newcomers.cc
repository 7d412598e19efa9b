// How a coordinator takes in who comes to a job that runs, and sends on who comes to one that is met elsewhere.
#include <algorithm>
#include <utility>

#include "rendezvous/admission.h"
#include "rendezvous/coordinator.h"

namespace lrun::launcher {
namespace {

using Kind = LauncherMessage::Kind;

}  // namespace

/// Not where some are done: the others may be, too, in a moment.
bool Coordinator::may_take_in() const {
  if (phase_ != Phase::kRunning || stopped_ || ends_ || some_reported_) return false;
  if (static_cast<int>(launchers_.size()) == members_ || members_ == most())
    return false;  // looked at for each message
  return static_cast<int>(next_members().size()) > members_;
}

void Coordinator::take_newcomers_in(SteadyTime now) {
  if (!may_take_in()) return;
  const std::vector<LauncherId> ids = next_members();
  if (!last_call_is_over(ids.size(), now)) return;
  ends_ = true;
  const std::string names = newcomers_in_words(ids);
  const bool one = static_cast<int>(ids.size()) == members_ + 1;
  const std::string all = nodes_in_words(least(), most());
  const std::string text = (one ? "node " : "nodes ") + names + (one ? " has" : " have") +
                           " joined: all start again on " + std::to_string(ids.size()) + " of " + all + " nodes";
  send_to_members({.kind = Kind::kResize, .round = round_, .text = text, .node = names});
}

/// Those in no round follow the job where another launcher holds its meeting.
void Coordinator::tell_successors() {
  std::vector<LauncherId> spares;
  for (const auto& [id, launcher] : launchers_) {
    if (!launcher.in_round) spares.push_back(id);
  }
  if (spares.empty() || successors_.empty()) return;
  sends_.push_back({.to = std::move(spares), .message = {.kind = Kind::kSpare, .successors = successors_}});
}

/// Whoever has not begun gives way, and joins the others. A member of a round of this meeting that invites it has given
/// it up and taken its place: what that means the Majority knows.
void Coordinator::invited(LauncherId from, const LauncherMessage& invitation) {
  if (!host_.empty() || left_behind_) {
    invitation_.emplace(from, invitation);
    return;
  }
  const JoinRecord& job = *invitation.join;
  if (took_part_.count(job.token) != 0 || (phase_ == Phase::kClosed && !place_)) return;
  if (const std::optional<Rejection> objection = launcher::rejection_of(job, records_of_job(), true)) {
    return send(from, {.kind = Kind::kRejected, .text = objection->why});
  }
  if (phase_ != Phase::kMeeting && !place_) return send(from, {.kind = Kind::kHasBegun, .round = round_});
  send_on_to({job.address, job.standby_port});
}

/// They were invited to a job that does not go on here, and may begin it where they came from.
void Coordinator::send_back_newcomers(const std::string& why) {
  no_meeting_ = why;
  std::erase_if(launchers_, [&](const auto& entry) {
    if (entry.second.in_round || entry.second.busy) return false;
    send(entry.first, {.kind = Kind::kNoRendezvous, .text = why}, true);
    return true;
  });
}

LauncherMessage Coordinator::sends_on(const RendezvousAddress& place) {
  return {.kind = Kind::kRedirect, .port = place.port, .address = place.address};
}

void Coordinator::send_on_to(const RendezvousAddress& place) {
  place_ = place;
  if (phase_ == Phase::kClosed) return;
  if (!launchers_.empty()) first_ = launchers_.begin()->second.record;
  ballot_.reset();
  resumed_.reset();
  dismiss(sends_on(place));
}

void Coordinator::meet_here(SteadyTime now) {
  place_.reset();
  first_.reset();
  last_call_.reset();
  phase_ = Phase::kMeeting;
  opened_ = progress_ = now;
  host_ = own_;
}

}  // namespace lrun::launcher
