#include "rendezvous/ballot.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

TEST(Ballot, NeedsMoreThanHalfWhereTheLeaderIsSilent) {
  struct {
    int members, votes;
    bool carried;
  } const rows[] = {
      {1, 1, true}, {2, 1, false}, {3, 1, false}, {3, 2, true},  {4, 2, false},
      {4, 3, true}, {5, 2, false}, {5, 3, true},  {6, 3, false}, {7, 4, true},
  };
  for (const auto& row : rows) {
    for (const bool first : {false, true}) {
      const Ballot ballot{.members = row.members, .proved = false, .first_in_line = first};
      EXPECT_EQ(ballot.carried_by(row.votes), row.carried) << row.votes << " of " << row.members;
    }
  }
}

TEST(Ballot, NeedsHalfOfTheOthersAndTheFirstInLineWhereTheLeaderIsDead) {
  struct {
    int members, votes;
    bool first, carried;
  } const rows[] = {
      {2, 1, true, true},  {3, 1, true, true},   {3, 1, false, false}, {3, 2, false, true}, {4, 1, true, false},
      {4, 2, false, true}, {5, 2, false, false}, {5, 2, true, true},   {5, 3, false, true}, {6, 2, true, false},
  };
  for (const auto& row : rows) {
    const Ballot ballot{.members = row.members, .proved = true, .first_in_line = row.first};
    EXPECT_EQ(ballot.carried_by(row.votes), row.carried)
        << row.votes << " of " << row.members << (row.first ? ", the first" : "");
  }
}

/// However a round is divided, at most one part is large enough, and its leader's counts.
TEST(Ballot, IsNeverCarriedInTwoParts) {
  for (int members = 1; members <= 9; ++members) {
    for (int part = 1; part < members; ++part) {
      const int rest = members - part;
      Majority held;
      held.round_began(0, members);
      for (int i = 0; i < part; ++i) held.lost(0);
      EXPECT_FALSE(held.has_quorum() && Ballot{.members = members}.carried_by(part)) << part << " of " << members;
      EXPECT_TRUE(held.has_quorum() || Ballot{.members = members}.carried_by(part)) << part << " of " << members;
      for (const bool first : {false, true}) {  // in the one part, where some have seen the leader's death
        const Ballot sure{.members = members, .proved = true, .first_in_line = first};
        const Ballot unsure{.members = members};
        const Ballot other{.members = members, .proved = true, .first_in_line = !first};
        EXPECT_FALSE(sure.carried_by(part) && unsure.carried_by(rest - 1)) << part << " of " << members;
        EXPECT_FALSE(sure.carried_by(part) && other.carried_by(rest - 1)) << part << " of " << members;
      }
    }
  }
}

TEST(Majority, IsLostWithMoreThanHalfOfTheMembers) {
  Majority held;
  held.round_began(0, 4);
  held.lost(0);
  held.lost(0);
  EXPECT_TRUE(held.has_quorum());
  held.lost(0);
  EXPECT_FALSE(held.has_quorum());
}

TEST(Majority, CountsARoundUntilAllKnowOfALaterOne) {
  Majority held;
  held.round_began(0, 5);
  held.lost(0);
  held.lost(0);
  held.round_began(1, 3);
  Majority known = held;
  held.lost(0);
  EXPECT_FALSE(held.has_quorum()) << "three of the five that know of the first round could go on from it";
  known.last_round_is_known();
  known.lost(0);
  EXPECT_TRUE(known.has_quorum());
  known.lost(1);
  EXPECT_FALSE(known.has_quorum());
}

TEST(Majority, DoesNotCountWhoWasNotThereYet) {
  Majority held;
  held.round_began(0, 1);
  held.round_began(1, 2);
  held.lost(1);
  EXPECT_TRUE(held.has_quorum());
}

}  // namespace
}  // namespace lrun::launcher
