// In: votes, and the members that are heard. Out: whether a candidate is elected, and whether a leader keeps its
// majority. Coordinator and SuccessorSearch ask it.
#include "rendezvous/ballot.h"

#include <algorithm>

namespace lrun::launcher {

bool Ballot::carried_by(int votes) const {
  // A leader that is proved to be dead has no vote. Half of the electors is enough for one group only: the one that has
  // the first in line, which every member knows.
  const int electors = proved ? members - 1 : members;
  return 2 * votes > electors || (proved && first_in_line && 2 * votes == electors);
}

void Majority::last_round_is_known() {
  // No member can go on from an earlier round any more.
  if (rounds_.size() > 1) rounds_.erase(rounds_.begin(), rounds_.end() - 1);
}

void Majority::lost(int since) {
  for (MembersOfRound& round : rounds_) {
    if (round.number >= since) ++round.unheard;
  }
}

bool Majority::has_quorum() const {
  return std::all_of(rounds_.begin(), rounds_.end(),
                     [](const MembersOfRound& round) { return 2 * round.unheard <= round.members; });
}

std::string no_majority_text(int nodes, int of) {
  return std::to_string(nodes) + " of " + std::to_string(of) + (of == 1 ? " node" : " nodes") +
         (nodes == 1 ? " is" : " are") + " not a majority, and a job that is cut off must not run twice" +
         (of == 2 ? "; with three nodes, or '--rdzv-backend etcd', the job survives the loss of one" : "");
}

}  // namespace lrun::launcher
