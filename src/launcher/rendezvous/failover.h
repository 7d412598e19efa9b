#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "rendezvous/ballot.h"
#include "rendezvous/job_state.h"
#include "rendezvous/roster.h"

namespace lrun::launcher {

/// How a new leader goes on with a job that another one began, until a round begins here: which launchers it waits for,
/// and whether enough of them are back. Pure; a value.
class Failover {
 public:
  /// \param state   that the other leader left behind
  /// \param ballot  that has to be carried, where the members elect the leader; empty: etcd chose it
  Failover(const JobState& state, std::optional<Ballot> ballot, SteadyTime since);

  /// A member of the last round is back. Its vote is its node rank in the round that the ballot is about.
  void voted(ConnectionId id, std::optional<int> node_rank);
  void left(ConnectionId id) { votes_.erase(id); }
  [[nodiscard]] bool has_voted(ConnectionId id) const { return votes_.count(id) != 0; }
  [[nodiscard]] int votes() const;

  [[nodiscard]] const std::optional<Ballot>& ballot() const { return ballot_; }
  /// Enough members are back; always true without a ballot.
  [[nodiscard]] bool is_carried() const { return !ballot_ || ballot_->carried_by(votes()); }
  /// The members that could carry the ballot do not come any more.
  [[nodiscard]] bool has_failed(Duration heartbeat, SteadyTime now) const;

  /// All members of the last round are back but its leader. False where the members are unknown.
  [[nodiscard]] bool all_are_back(const Roster& roster) const;
  /// Some of them may still come: a heartbeat is how long they need to notice the loss.
  [[nodiscard]] bool waits(const Roster& roster, Duration heartbeat, SteadyTime now) const;

  /// Until when that is.
  [[nodiscard]] SteadyTime end_of_wait(Duration heartbeat) const { return since_ + heartbeat; }
  /// When has_failed() becomes true.
  [[nodiscard]] SteadyTime end_of_ballot(Duration heartbeat) const { return since_ + kHeartbeatsOfBallot * heartbeat; }

 private:
  static constexpr int kHeartbeatsOfBallot = 2;

  std::optional<Ballot> ballot_;
  SteadyTime since_;
  std::vector<std::string> expected_;  ///< tokens of the members that may come back; empty: unknown
  std::map<ConnectionId, int> votes_;  ///< node ranks
};

}  // namespace lrun::launcher
