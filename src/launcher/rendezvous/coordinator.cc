#include "rendezvous/coordinator.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace lrun::launcher {
namespace {

using Kind = LauncherMessage::Kind;

/// Reports that are kept before one is made of them.
constexpr std::size_t kMostBytesOfReports = std::size_t{1} << 20U;

}  // namespace

void Coordinator::received(LauncherId from, const LauncherMessage& message, SteadyTime now) {
  const auto found = launchers_.find(from);
  if (found == launchers_.end()) {
    if (message.kind == Kind::kInvite && message.join) return invited(from, message);
    const bool may_be_early = message.kind == Kind::kReady || message.kind == Kind::kLeave;
    if (message.kind == Kind::kJoin ? message.join.has_value() : may_be_early) knock(from, message, now);
    return;
  }
  Launcher& launcher = found->second;
  switch (message.kind) {
    case Kind::kStopping:
      // Sent before it heard of the next round: it never says so of a round that it was ready to leave.
      if (launcher.in_round && (message.round == round_ || message.round + 1 == round_)) stop(from, message.text);
      break;
    case Kind::kBegun:
      take_begun(launcher, message.round);
      break;
    case Kind::kLeaderless:
      left(from, "its launcher heard nothing of the meeting", now, now, true);
      break;
    case Kind::kReport:
      take_report(launcher, message, now);
      break;
    case Kind::kReady:
      take_ready(from, launcher, message, now);
      break;
    case Kind::kDropOut:
      left(from, message.text, now, now);
      break;
    case Kind::kLeave:
      leave(from, message.text, now);
      break;
    default:
      break;
  }
}

void Coordinator::join(LauncherId from, const LauncherMessage& message, SteadyTime now) {
  const JoinRecord& record = *message.join;
  if (shares_failure(from, record)) return;
  if (!no_meeting_.empty() && !message.resumes) {
    return send(from, {.kind = Kind::kNoRendezvous, .text = no_meeting_}, true);
  }
  if (!is_latest_connection(from, record, now)) return send(from, {.kind = Kind::kRejected}, true);
  if (const std::optional<Rejection> objection = rejection_of(record, now)) {
    return turn_away(from, record, *objection, now);
  }
  if (place_) return send(from, sends_on(*place_), true);
  if (is_of_another_job(message)) {
    return send(from, {.kind = Kind::kRejected, .text = "a new job of the same name has begun to meet"}, true);
  }
  if (!record.cannot_start.empty()) return take_failure(from, record, now);
  compare_command(record);
  is_new_ = is_new_ || !(message.resumes || message.was_spare);
  Launcher& launcher = launchers_[from];
  launcher.record = record;
  launcher.came = now;
  ids_[record.token] = from;
  last_call_.joined(now);
  if (message.resumes) take_back(launcher, message, now);
  if (launcher.in_round) return;
  if (phase_ == Phase::kMeeting) return begin_when_complete(now);
  tell_spare(from);
  look_at_spares_ = look_at_spares_.value_or(now + kPatienceWithSpares * times_.heartbeat);
  take_newcomers_in(now);
  begin_again_when_ready(now);
}

std::optional<Rejection> Coordinator::rejection_of(const JoinRecord& record, SteadyTime now) const {
  if (phase_ == Phase::kClosed && !place_) return Rejection{"the job is over"};
  if (const Duration wait = rejoin_backoff_.wait(record, now); wait > Duration::zero()) {
    return Rejection{"node " + record.node + " has left the job " + RejoinBackoff::limit_in_words() +
                     ": it is let in again after " + format_duration(wait)};
  }
  return launcher::rejection_of(record, records_of_job(), phase_ != Phase::kMeeting);
}

void Coordinator::begin_when_complete(SteadyTime now) {
  if (phase_ != Phase::kMeeting || launchers_.empty()) return;
  if (static_cast<int>(launchers_.size()) < least()) return last_call_.reset();
  const std::vector<LauncherId> ids = next_members();
  if (static_cast<int>(ids.size()) < least()) return last_call_.reset();
  if (!first_call_is_over(ids.size(), now)) return;
  begin(0, ids);
  for (const auto& [id, launcher] : launchers_) {
    if (!launcher.in_round) tell_spare(id);
  }
}

void Coordinator::begin(int round, const std::vector<LauncherId>& ids) {
  round = std::max(round, newest_ + 1);
  std::vector<JoinRecord> records;
  settled_ = is_settled_at_once(ids);
  for (auto& [id, launcher] : launchers_) {
    if (!std::exchange(launcher.in_round, false)) launcher.since = round;
    launcher.knows_round = false;
    launcher.vote.reset();
  }
  for (const LauncherId id : ids) records.push_back(launchers_.at(id).record);
  RankAssignment assignment = assign_ranks(records);
  assignment.common.round = round;
  assignment.common.attempt = attempt_;
  assignment.common.history = history_;
  phase_ = Phase::kRunning;
  round_ = round;
  stopped_ = ends_ = some_reported_ = false;
  short_since_.reset();
  last_call_.reset();
  resumed_.reset();
  ballot_.reset();
  majority_.round_began(round, static_cast<int>(ids.size()));
  if (settled_) majority_.last_round_is_known();
  ++rounds_begun_;
  reports_.clear();
  report_bytes_ = 0;
  members_ = nodes_ = missing_reports_ = static_cast<int>(ids.size());
  ready_ = reported_ = informed_ = 0;
  std::vector<LauncherId> by_rank;
  for (const std::size_t index : assignment.order) {
    Launcher& launcher = launchers_.at(ids[index]);
    launcher.node_rank = static_cast<int>(by_rank.size());
    launcher.in_round = true;
    launcher.reported = launcher.ready = false;
    if (guards_majority_) took_part_.insert(launcher.record.token);
    if (guards_majority_ && launcher.record.token == own_) name_holder(assignment, launcher.node_rank);
    by_rank.push_back(ids[index]);
  }
  if (!assignment.common.leader) assignment.common.successors.clear();  // none of the members is who they succeed
  successors_ = assignment.common.successors;
  sends_.push_back({.to = std::move(by_rank),
                    .message = {.kind = Kind::kBegin,
                                .round = round,
                                .settled = settled_,
                                .membership = std::move(assignment.common)},
                    .selves = std::move(assignment.members)});
  tell_successors();
}

/// Also between two rounds: then nobody is to begin the next one.
void Coordinator::stop(LauncherId from, const std::string& reason) {
  if (phase_ == Phase::kMeeting || std::exchange(stopped_, true)) return;
  send_to_members({.kind = Kind::kStop, .round = round_, .text = reason}, from);
}

void Coordinator::take_report(Launcher& launcher, const LauncherMessage& report, SteadyTime now) {
  if (phase_ != Phase::kRunning || !launcher.in_round || report.round != round_ || launcher.reported) return;
  launcher.reported = some_reported_ = true;
  ++reported_;
  --missing_reports_;
  reports_.push_back(report.text);
  report_bytes_ += report.text.size();
  if (report_bytes_ > kMostBytesOfReports) {
    reports_ = {gather_(reports_)};
    report_bytes_ = reports_.front().size();
  }
  end_round_when_reported(now);
}

void Coordinator::end_round_when_reported(SteadyTime now) {
  if (phase_ != Phase::kRunning || reported_ < members_) return;
  if (missing_reports_ > 0) reports_.emplace_back();
  phase_ = Phase::kDeciding;
  stopped_ = goes_on_ = false;
  last_call_.reset();
  send_to_members({.kind = Kind::kOver, .round = round_, .text = gather_(std::exchange(reports_, {}))});
  begin_again_when_ready(now);  // with spares alone, where nobody else is left
}

void Coordinator::take_ready(LauncherId from, Launcher& launcher, const LauncherMessage& message, SteadyTime now) {
  if (std::exchange(launcher.busy, false)) {
    launcher.record.store_port = message.port;
    take_newcomers_in(now);
    return begin_again_when_ready(now);
  }
  const bool is_next = message.round == round_ + 1 || (resumed_ && message.round <= round_);
  if (!is_next || !launcher.in_round) return;
  if (phase_ == Phase::kClosed) return tell_end(from);
  if (phase_ != Phase::kDeciding || std::exchange(launcher.ready, true)) return;
  ++ready_;
  goes_on_ = true;
  if (message.port != 0) launcher.record.store_port = message.port;
  if (message.attempt >= attempt_) {
    attempt_ = message.attempt;
    history_ = message.text;
  }
  begin_again_when_ready(now);
}

void Coordinator::begin_again_when_ready(SteadyTime now) {
  if (phase_ != Phase::kDeciding || stopped_ || launchers_.empty() || !all_ready() || waits_for_others(now)) return;
  if (ballot_ && !ballot_->carried_by(votes())) return;
  const std::vector<LauncherId> ids = next_members();
  if (static_cast<int>(ids.size()) < least()) {
    if (!short_since_) short_since_ = progress_ = now;
    return last_call_.reset();
  }
  short_since_.reset();
  if (last_call_is_over(ids.size(), now)) begin(round_ + 1, ids);
}

/// Whoever has reported is not missed in this round, unless the workers' store was with it.
void Coordinator::left(LauncherId who, const std::string& how, SteadyTime now, SteadyTime heard, bool may_run) {
  const bool has_said_bye = std::any_of(early_.begin(), early_.end(), [who](const auto& waiting) {
    return waiting.first == who && waiting.second.kind == Kind::kLeave;
  });
  if (!has_said_bye) std::erase_if(early_, [who](const auto& waiting) { return waiting.first == who; });
  if (invitation_ && invitation_->first == who) invitation_.reset();
  if (launchers_.count(who) == 0) return;
  const Launcher gone = take_away(who);
  if (phase_ == Phase::kMeeting) return begin_when_complete(now);
  if (phase_ == Phase::kRunning && !may_take_in()) last_call_.reset();
  const bool done = phase_ == Phase::kRunning && gone.reported && gone.node_rank != 0;
  if (gone.in_round && phase_ != Phase::kClosed && !done) {
    ends_ = true;
    rejoin_backoff_.note(gone.record, now);
    tell_loss(gone.record, how, now, heard);
  }
  if (guards_majority_ && may_run && gone.in_round && phase_ != Phase::kClosed) majority_.lost(gone.since);
  if (!majority_.stands()) return end_without_majority(members_, nodes_);
  if (launchers_.empty() || (gone.in_round && members_ == 0 && is_called_off())) return close("its nodes are lost");
  end_round_when_reported(now);
  begin_again_when_ready(now);
}

/// Spares that are alone cannot know whether somebody asked for the job's end, or whether it was done: where it was
/// told to stop, or was over and nobody had said that it goes on, they are not to begin it anew.
bool Coordinator::is_called_off() const { return stopped_ || (phase_ == Phase::kDeciding && !goes_on_); }

Coordinator::Launcher Coordinator::take_away(LauncherId who) {
  Launcher gone = launchers_.at(who);
  launchers_.erase(who);
  ids_.erase(gone.record.token);
  if (gone.in_round) --members_;
  if (gone.in_round && gone.reported) --reported_;
  if (gone.ready) --ready_;
  return gone;
}

/// None can follow: whoever is ready for one is told.
void Coordinator::leave(LauncherId who, const std::string& end, SteadyTime now) {
  const Launcher launcher = launchers_.at(who);
  const bool over = phase_ == Phase::kDeciding || phase_ == Phase::kClosed;
  if (!launcher.in_round || (!over && !launcher.reported)) return left(who, "its launcher has left", now, now);
  if (phase_ != Phase::kClosed) who_left_ = launcher.record.node;
  take_away(who);
  if (!over && members_ > 0) return end_round_when_reported(now);
  if (phase_ == Phase::kDeciding) {
    for (const auto& [id, other] : launchers_) {
      if (other.in_round && other.ready) tell_end(id);
    }
  }
  close(end);
}

/// \param end  what the job came to, for those that were not needed
void Coordinator::close(const std::string& end) {
  phase_ = Phase::kClosed;
  std::erase_if(launchers_, [&](const auto& entry) {
    if (entry.second.in_round) return false;
    send(entry.first, {.kind = Kind::kEnded, .text = end}, true);
    return true;
  });
}

/// To one that is ready for a round which does not come.
void Coordinator::tell_end(LauncherId who) {
  send(who, {.kind = Kind::kEnded, .text = "node " + who_left_ + " has left the job"}, true);
}

void Coordinator::advance(SteadyTime now) {
  if (failure_ && now >= failure_->until) untold_ = 0;
  if (look_at_spares_ && now >= *look_at_spares_) look_at_spares(now);
  if (left_behind_ && now >= opened_ + times_.heartbeat) {
    left_behind_.reset();
    progress_ = now;
    let_in(now);
  }
  if (left_behind_) return;
  if (phase_ == Phase::kMeeting) return advance_meeting(now);
  take_newcomers_in(now);
  if (ballot_) advance_ballot(now);
  begin_again_when_ready(now);
  if (phase_ == Phase::kDeciding && short_since_) advance_while_short(now);
}

void Coordinator::advance_meeting(SteadyTime now) {
  begin_when_complete(now);
  if (phase_ != Phase::kMeeting) return;
  if (now >= opened_ + times_.join) return give_up(Kind::kRejected, times_.join);
  if (now < progress_ + times_.progress) return;
  progress_ = now;
  std::vector<LauncherId> all = all_launchers();
  if (!all.empty())
    sends_.push_back({.to = std::move(all), .message = {.kind = Kind::kWaiting, .text = who_is_there()}});
}

/// Some nodes are lost, and too few are left.
void Coordinator::advance_while_short(SteadyTime now) {
  if (now >= *short_since_ + times_.replacement) return give_up(Kind::kEnded, times_.replacement);
  if (now < progress_ + times_.progress) return;
  progress_ = now;
  send_to_members({.kind = Kind::kWaiting, .text = who_is_there()});
}

void Coordinator::give_up(Kind kind, Duration after) {
  const std::string waited = after == Duration::zero() ? "" : " in " + format_duration(after);
  const bool of_ranks = !launchers_.empty() && launchers_.begin()->second.record.of_rank;
  dismiss({.kind = kind, .text = "not enough " + unit_of(of_ranks, 2) + waited + ": " + who_is_there()});
}

std::optional<SteadyTime> Coordinator::next_step() const {
  if (left_behind_) return opened_ + times_.heartbeat;
  if (phase_ == Phase::kMeeting) {
    const SteadyTime next = std::min(opened_ + times_.join, progress_ + times_.progress);
    const bool enough = !launchers_.empty() && static_cast<int>(launchers_.size()) >= least();
    return enough ? std::min(next, first_call_end()) : next;
  }
  if (may_take_in()) return last_call_.end();
  if (ballot_ && !ballot_->carried_by(votes())) return *resumed_ + 2 * times_.heartbeat;
  if (phase_ != Phase::kDeciding || stopped_ || launchers_.empty() || !all_ready()) return std::nullopt;
  if (!short_since_ && resumed_ && !all_are_back()) return std::max(last_call_.end(), *resumed_ + times_.heartbeat);
  if (!short_since_) return last_call_.end();
  return std::min(*short_since_ + times_.replacement, progress_ + times_.progress);
}

std::vector<Coordinator::Send> Coordinator::take_sends() { return std::exchange(sends_, {}); }

void Coordinator::send(LauncherId to, LauncherMessage message, bool last) {
  sends_.push_back({.to = {to}, .message = std::move(message), .last = last});
}

void Coordinator::send_to_members(LauncherMessage message, LauncherId except) {
  std::vector<LauncherId> members;
  for (const auto& [id, launcher] : launchers_) {
    if (launcher.in_round && id != except) members.push_back(id);
  }
  if (!members.empty()) sends_.push_back({.to = std::move(members), .message = std::move(message)});
}

}  // namespace lrun::launcher
