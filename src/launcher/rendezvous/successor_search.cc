#include "rendezvous/successor_search.h"

#include <algorithm>

namespace lrun::launcher {

bool Ballot::carried_by(int votes) const {
  const int electors = proved ? members - 1 : members;
  return 2 * votes > electors || (proved && first_in_line && 2 * votes == electors);
}

std::string no_majority_text(int nodes, int of) {
  return std::to_string(nodes) + " of " + std::to_string(of) + (of == 1 ? " node" : " nodes") +
         (nodes == 1 ? " is" : " are") + " no majority, and a job that is cut off must not go on twice" +
         (of == 2 ? "; three nodes, or '--rdzv-backend etcd', survive the silence of one" : "");
}

void Majority::last_round_is_known() {
  if (rounds_.size() > 1) rounds_.erase(rounds_.begin(), rounds_.end() - 1);
}

void Majority::lost(int since) {
  for (Round& round : rounds_) {
    if (round.number >= since) ++round.unheard;
  }
}

bool Majority::stands() const {
  return std::all_of(rounds_.begin(), rounds_.end(),
                     [](const Round& round) { return 2 * round.unheard <= round.members; });
}

SuccessorSearch::SuccessorSearch(const Membership& round)
    : line_(round.successors),
      nodes_(round.num_nodes),
      holder_(round.leader.value_or(0)),
      self_(round.self.node_rank) {}

SuccessorSearch::Step SuccessorSearch::leader_lost(bool closed) {
  return closed ? Step{.kind = Step::Kind::kProbe} : next();
}

SuccessorSearch::Step SuccessorSearch::probed(bool refused) {
  if (turned_to_ == 0) {
    proved_ = refused;
    return next();
  }
  if (refused) {
    voted_ = false;
    return next();
  }
  return {.why =
              "node " + line_.at(turned_to_ - 1).name + ", which was to hold the next meeting, is out of reach, too"};
}

/// A round that it has begun without us may go on.
SuccessorSearch::Step SuccessorSearch::successor_lost(bool closed) {
  return closed ? Step{.kind = Step::Kind::kProbe} : probed(false);
}

SuccessorSearch::Step SuccessorSearch::next() {
  if (turned_to_ == line_.size()) return {.why = "no other node that can hold the meeting is in reach"};
  const Successor& successor = line_.at(turned_to_++);
  if (successor.node_rank != self_) return {.kind = Step::Kind::kJoin, .other = successor};
  return {.kind = Step::Kind::kLead,
          .ballot = {.members = nodes_, .leader = holder_, .proved = proved_, .first_in_line = turned_to_ == 1}};
}

}  // namespace lrun::launcher
