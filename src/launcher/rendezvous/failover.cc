// In: the state that the last leader left, and the members that come. Out: whether enough of them are back. Coordinator
// asks it on the new leader.
#include "rendezvous/failover.h"

#include <algorithm>
#include <set>

namespace lrun::launcher {

Failover::Failover(const JobState& state, std::optional<Ballot> ballot, SteadyTime since)
    : ballot_(ballot), since_(since), expected_(state.members) {
  std::erase(expected_, state.leader);
}

void Failover::voted(ConnectionId id, std::optional<int> node_rank) {
  // A launcher that has the rank of the lost leader was no other member of that round.
  if (ballot_ && node_rank && *node_rank != ballot_->leader) votes_[id] = *node_rank;
}

int Failover::votes() const {
  std::set<int> ranks;  // a member that connected twice has one vote
  for (const auto& [id, rank] : votes_) {
    if (ballot_ && rank < ballot_->members) ranks.insert(rank);
  }
  return static_cast<int>(ranks.size());
}

bool Failover::has_failed(Duration heartbeat, SteadyTime now) const {
  return !is_carried() && now >= end_of_ballot(heartbeat);
}

bool Failover::all_are_back(const Roster& roster) const {
  if (ballot_) return votes() + 1 >= ballot_->members;  // all but the lost leader
  return !expected_.empty() && std::all_of(expected_.begin(), expected_.end(),
                                           [&](const std::string& token) { return roster.find(token).has_value(); });
}

bool Failover::waits(const Roster& roster, Duration heartbeat, SteadyTime now) const {
  return now < end_of_wait(heartbeat) && !all_are_back(roster);
}

}  // namespace lrun::launcher
