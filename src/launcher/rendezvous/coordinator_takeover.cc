// How a coordinator goes on with a job that another one has begun.
#include <algorithm>
#include <set>
#include <utility>

#include "rendezvous/coordinator.h"

namespace lrun::launcher {
namespace {

using Kind = LauncherMessage::Kind;

/// One that did not hear of its round may have been a newcomer when the last holder was lost.
bool took_part(const LauncherMessage& join, const JobState& state) {
  return join.resumes || join.was_spare ||
         std::find(state.members.begin(), state.members.end(), join.join->token) != state.members.end();
}

}  // namespace

void Coordinator::resume(const JobState& state, SteadyTime now) {
  left_behind_ = state;
  opened_ = progress_ = now;
}

void Coordinator::resume(const JobState& state, const Ballot& ballot, SteadyTime now) {
  opened_ = progress_ = now;
  ballot_ = ballot;
  go_on_from(state, now);
}

/// The launcher of the holder joins first, and before all of them one that knows whether this is a job that goes on;
/// who comes earlier may also be ready already, or have nothing more to do than to say why no round is to follow.
void Coordinator::knock(LauncherId from, const LauncherMessage& message, SteadyTime now) {
  const auto before =
      std::count_if(early_.begin(), early_.end(), [from](const auto& waiting) { return waiting.first == from; });
  if (message.kind != Kind::kJoin) {
    const bool is_last = message.kind == Kind::kLeave;
    if (before == 1 || (is_last && before == 2)) early_.emplace_back(from, message);
    return;
  }
  if (before != 0) return;
  const bool is_host = message.join->token == host_;
  if (is_host) host_.clear();
  early_.emplace(is_host ? early_.begin() : early_.end(), from, message);
  if (left_behind_ && took_part(message, *left_behind_)) go_on_from(*std::exchange(left_behind_, {}), opened_);
  let_in(now);
}

void Coordinator::let_in(SteadyTime now) {
  if (!host_.empty() || left_behind_) return;
  for (const auto& [id, waiting] : std::exchange(early_, {})) {
    waiting.kind == Kind::kJoin ? join(id, waiting, now) : received(id, waiting, now);
  }
  if (const auto invitation = std::exchange(invitation_, {})) invited(invitation->first, invitation->second);
}

void Coordinator::go_on_from(const JobState& state, SteadyTime since) {
  phase_ = Phase::kDeciding;
  resumed_ = since;
  goes_on_ = true;  // the round was lost with its holder
  round_ = state.round;
  attempt_ = state.attempt;
  history_ = state.history;
  expected_ = state.members;
  std::erase(expected_, state.leader);
}

JobState Coordinator::state() const {
  JobState state{.round = round_, .attempt = attempt_, .history = history_};
  for (const auto& [id, launcher] : launchers_) {
    if (launcher.in_round) state.members.push_back(launcher.record.token);
  }
  return state;
}

/// Launchers that belonged to none have begun to meet before it came, and nobody has left anything behind for them.
bool Coordinator::is_of_another_job(const LauncherMessage& join) const {
  return join.resumes && phase_ == Phase::kMeeting && is_new_;
}

/// It may know more than the last holder could leave behind: a round that has begun since. Where the job goes on
/// without it, it is a newcomer, once its workers are stopped.
void Coordinator::take_back(Launcher& launcher, const LauncherMessage& join, SteadyTime now) {
  const int round = join.round;
  newest_ = std::max(newest_, round);
  if (phase_ == Phase::kMeeting) go_on_from({.round = round}, now);
  launcher.in_round = resumed_ && phase_ == Phase::kDeciding && round + 1 >= round_;
  launcher.busy = !launcher.in_round;
  if (!launcher.in_round) return;
  if (ballot_ && round == round_ && join.node_rank != ballot_->leader) launcher.vote = join.node_rank;
  round_ = std::max(round_, round);
  ++members_;
}

int Coordinator::votes() const {
  std::set<int> ranks;
  for (const auto& [id, launcher] : launchers_) {
    if (launcher.vote && *launcher.vote < ballot_->members) ranks.insert(*launcher.vote);
  }
  return static_cast<int>(ranks.size());
}

void Coordinator::advance_ballot(SteadyTime now) {
  const int count = votes();
  if (ballot_->carried_by(count) || now < *resumed_ + 2 * times_.heartbeat) return;
  const int of = ballot_->members;
  ballot_.reset();
  send_back_newcomers(no_majority_text(count, of));
  end_without_majority(count, of);
}

/// Who comes next when this launcher is lost.
void Coordinator::name_holder(RankAssignment& assignment, int rank) const {
  Membership& common = assignment.common;
  common.leader = rank;
  common.leader_name = assignment.members.at(static_cast<std::size_t>(rank)).name;
  std::erase_if(common.successors, [rank](const Successor& successor) { return successor.node_rank == rank; });
  if (common.successors.size() > Membership::kMostSuccessors) common.successors.resize(Membership::kMostSuccessors);
}

/// The first round, one of the same members, and that of all that are left of a lost holder's: there are too few
/// members that know only of the round before to go on beside those that know of this one, or the other way round.
bool Coordinator::is_settled_at_once(const std::vector<LauncherId>& ids) const {
  if (!ballot_ && rounds_begun_ == 0) return true;
  const std::size_t before =
      ballot_ ? static_cast<std::size_t>(ballot_->members) - 1 : static_cast<std::size_t>(nodes_);
  return (ballot_ || settled_) && ids.size() == before && std::all_of(ids.begin(), ids.end(), [this](LauncherId id) {
           const Launcher& launcher = launchers_.at(id);
           return ballot_ ? launcher.vote.has_value() : launcher.in_round;
         });
}

std::optional<RendezvousAddress> Coordinator::standby_of(LauncherId who) const {
  const auto found = launchers_.find(who);
  if (!guards_majority_ || phase_ == Phase::kClosed || found == launchers_.end()) return std::nullopt;
  const JoinRecord& record = found->second.record;
  if (!found->second.in_round || record.standby_port == 0) return std::nullopt;
  return RendezvousAddress{record.address, record.standby_port};
}

/// Who does not know of a round may still go on from the one before, without those who do.
void Coordinator::take_begun(Launcher& launcher, int round) {
  if (!guards_majority_ || settled_ || phase_ == Phase::kMeeting || !launcher.in_round || round != round_) return;
  if (std::exchange(launcher.knows_round, true) || ++informed_ < nodes_) return;
  settled_ = true;
  majority_.last_round_is_known();
  send_to_members({.kind = Kind::kSettled, .round = round_});
}

void Coordinator::end_without_majority(int nodes, int of) {
  dismiss({.kind = Kind::kEnded, .text = no_majority_text(nodes, of)});
}

/// Connected again: its last connection may not be known to be dead yet, or be heard of only now.
bool Coordinator::is_latest_connection(LauncherId from, const JoinRecord& record, SteadyTime now) {
  const auto other = ids_.find(record.token);
  if (other == ids_.end() || launchers_.count(other->second) == 0) return true;
  if (other->second > from) return false;
  left(LauncherId(other->second), "it has connected again", now, now);
  return true;
}

void Coordinator::dismiss(const LauncherMessage& message) {
  phase_ = Phase::kClosed;
  std::vector<LauncherId> all = all_launchers();
  if (!all.empty()) sends_.push_back({.to = std::move(all), .message = message, .last = true});
  launchers_.clear();
  members_ = ready_ = reported_ = 0;
}

bool Coordinator::all_are_back() const {
  if (ballot_) return votes() + 1 >= ballot_->members;
  return !expected_.empty() && std::all_of(expected_.begin(), expected_.end(), [this](const std::string& token) {
    return std::any_of(launchers_.begin(), launchers_.end(),
                       [&](const auto& entry) { return entry.second.record.token == token; });
  });
}

bool Coordinator::waits_for_others(SteadyTime now) const {
  return resumed_ && now < *resumed_ + times_.heartbeat && !all_are_back();
}

}  // namespace lrun::launcher
