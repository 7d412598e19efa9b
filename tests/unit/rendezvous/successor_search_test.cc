#include "rendezvous/successor_search.h"

#include <gtest/gtest.h>

#include <string>

namespace lrun::launcher {
namespace {

using Step = SuccessorSearch::Step;

Successor successor(int rank) { return {rank, std::string(1, static_cast<char>('a' + rank)), "10.0.0.1", 7000 + rank}; }

/// Four members, of which the one with this rank leads, and we have that one.
SuccessorSearch search(int leader, int self) {
  Membership round{.num_nodes = 4, .leader = leader, .self = {.node_rank = self}};
  for (int rank = 0; rank < 4; ++rank) {
    if (rank != leader) round.successors.push_back(successor(rank));
  }
  return SuccessorSearch(round);
}

Step join(int rank) { return {.kind = Step::Kind::kJoin, .other = successor(rank)}; }
Step hold(const Ballot& ballot) { return {.kind = Step::Kind::kLead, .ballot = ballot}; }

TEST(SuccessorSearch, MakesSureOfTheDeathAndTurnsToTheFirst) {
  SuccessorSearch member = search(0, 3);
  EXPECT_EQ(member.leader_lost(true), (Step{.kind = Step::Kind::kProbe}));
  EXPECT_EQ(member.probed(true), join(1));
  EXPECT_EQ(member.out_of_reach(), join(2));
  EXPECT_EQ(member.out_of_reach(), hold({.members = 4, .leader = 0, .proved = true}));
}

TEST(SuccessorSearch, LeadsWhereItComesFirst) {
  for (const bool refused : {false, true}) {
    SuccessorSearch first = search(0, 1);
    (void)first.leader_lost(true);
    EXPECT_EQ(first.probed(refused), hold({.members = 4, .leader = 0, .proved = refused, .first_in_line = true}));
  }
  EXPECT_EQ(search(2, 0).leader_lost(false), hold({.members = 4, .leader = 2, .first_in_line = true}));
}

TEST(SuccessorSearch, DoesNotAskWhetherASilentLeaderIsDead) { EXPECT_EQ(search(1, 2).leader_lost(false), join(0)); }

TEST(SuccessorSearch, EndsWhereNobodyOfTheLineAnswers) {
  Membership round{.num_nodes = 40, .leader = 0, .self = {.node_rank = 30}};
  round.successors = {successor(1)};
  SuccessorSearch member(round);
  EXPECT_EQ(member.leader_lost(false), join(1));
  EXPECT_EQ(member.out_of_reach().why, "no other node that can lead is within reach");
}

TEST(SuccessorSearch, KeepsItsVoteUnlessWhoGotItIsDead) {
  SuccessorSearch voter = search(0, 3);
  (void)voter.leader_lost(false);
  voter.joined();
  EXPECT_TRUE(voter.has_voted());
  SuccessorSearch of_dead = voter;
  EXPECT_EQ(voter.successor_lost(false).kind, Step::Kind::kGiveUp);
  EXPECT_EQ(of_dead.successor_lost(true), (Step{.kind = Step::Kind::kProbe}));
  SuccessorSearch of_living = of_dead;
  EXPECT_EQ(of_dead.probed(true), join(2));
  EXPECT_FALSE(of_dead.has_voted());
  EXPECT_EQ(of_living.probed(false).why, "node b, the next in line to lead, cannot be reached either");
}

}  // namespace
}  // namespace lrun::launcher
