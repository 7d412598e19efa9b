// In: what became of the call at each successor. Out: the next step of the search. state_failing_over.cc takes the
// steps.
#include "rendezvous/successor_search.h"

namespace lrun::launcher {

SuccessorSearch::SuccessorSearch(const Membership& round)
    : line_(round.successors),
      nodes_(round.num_nodes),
      leader_(round.leader.value_or(0)),
      self_(round.self.node_rank) {}

SuccessorSearch::Step SuccessorSearch::leader_lost(bool closed) {
  return closed ? Step{.kind = Step::Kind::kProbe} : next();
}

SuccessorSearch::Step SuccessorSearch::probed(bool refused) {
  if (tried_ == 0) {
    proved_ = refused;
    return next();
  }
  if (refused) {
    voted_ = false;
    return next();
  }
  return {.why = "node " + line_.at(tried_ - 1).name + ", the next in line to lead, cannot be reached either"};
}

SuccessorSearch::Step SuccessorSearch::successor_lost(bool closed) {
  // A silent one may have begun a round without us: our vote stays with it.
  return closed ? Step{.kind = Step::Kind::kProbe} : probed(false);
}

SuccessorSearch::Step SuccessorSearch::next() {
  if (tried_ == line_.size()) return {.why = "no other node that can lead is within reach"};
  const Successor& successor = line_.at(tried_++);
  if (successor.node_rank != self_) return {.kind = Step::Kind::kJoin, .other = successor};
  return {.kind = Step::Kind::kLead,
          .ballot = {.members = nodes_, .leader = leader_, .proved = proved_, .first_in_line = tried_ == 1}};
}

}  // namespace lrun::launcher
