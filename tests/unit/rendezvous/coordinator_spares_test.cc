// Nodes of a job that are known to wait for the place of a lost one.
#include <gtest/gtest.h>

#include "coordinator_harness.h"
#include "rendezvous/coordinator.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;
using Kind = LauncherMessage::Kind;
using test::node_at;

/// A job of two nodes, as a manager starts it: nobody from outside can come.
class Spares : public ::testing::Test {
 protected:
  explicit Spares(int spares = 1)
      : harness_(2, 2, test::joined,
                 RendezvousTimes{.join = 60s, .replacement = 0s, .last_call = 1s, .spares = spares}) {}

  void join(int rank) {
    harness_.join(static_cast<ConnectionId>(rank + 1), node_at("10.0.0." + std::to_string(rank + 1), 1, rank));
  }
  void end_round(ConnectionId id, int round) {
    harness_.say(id, Kind::kReport, round);
    harness_.ready(id, round + 1, 0);
  }

  test::CoordinatorHarness harness_;
};

class TwoSpares : public Spares {
 protected:
  TwoSpares() : Spares(2) {}
};

TEST_F(Spares, AreWaitedForBeforeTheJobBegins) {
  join(0);
  join(1);
  harness_.pass(4s);
  EXPECT_EQ(harness_.said(), "") << "a quick job would be over before the spare has found it";
  harness_.pass(1s);
  ASSERT_EQ(harness_.said(), "waiting>1 waiting>2");
  EXPECT_TRUE(harness_.sent[0].message.text.ends_with("; missing: 1 of 3 nodes (node rank 2)"))
      << harness_.sent[0].message.text;
  join(2);
  EXPECT_EQ(harness_.said(), "begin>1 begin>2 spare>3");
}

TEST_F(Spares, AreNotWaitedForWithoutEnd) {
  join(0);
  harness_.pass(3s);
  join(1);
  harness_.pass(29s);
  (void)harness_.said();
  EXPECT_EQ(harness_.coordinator.deadline(), harness_.now + 1s);
  harness_.pass(1s);
  EXPECT_EQ(harness_.said(), "begin>1 begin>2");
  join(2);
  EXPECT_EQ(harness_.said(), "spare>3") << "it may be needed yet";
}

TEST_F(Spares, TakeThePlaceOfANodeThatNeverCame) {
  join(2);
  harness_.pass(2s);
  join(0);
  harness_.pass(30s);
  EXPECT_TRUE(harness_.said().ends_with("begin>1 begin>3"));
  EXPECT_EQ(harness_.sent.back().message.membership->self.node_rank, 1);
}

TEST_F(Spares, AreThoseThatAskedForTheHighestRanks) {
  for (const int rank : {2, 1, 0}) {
    harness_.join(static_cast<ConnectionId>(3 - rank), node_at("10.0.0." + std::to_string(rank + 1), 1, rank));
  }
  EXPECT_EQ(harness_.said(), "begin>3 begin>2 spare>1") << "node rank 0 holds the meeting";
}

TEST_F(Spares, TakeThePlaceOfALostNodeAtOnce) {
  for (const int rank : {0, 1, 2}) join(rank);
  (void)harness_.said();
  harness_.lose(2, "silence for 5s");
  ASSERT_EQ(harness_.said(), "lost>1");
  EXPECT_EQ(harness_.sent[0].message.node, "node-10.0.0.2");
  EXPECT_EQ(harness_.sent[0].message.spare, "node-10.0.0.3");
  end_round(1, 0);
  ASSERT_EQ(harness_.said(), "over>1 begin>1 begin>3");
  const Membership& membership = *harness_.sent.back().message.membership;
  EXPECT_EQ(membership.num_nodes, 2);
  EXPECT_EQ(membership.world_size, 2);
  EXPECT_EQ(membership.self.node_rank, 1);
  EXPECT_EQ(membership.attempt, 0) << "a change of nodes costs no restart";
}

TEST_F(Spares, EndTheJobWhenTheyAreUsedUp) {
  for (const int rank : {0, 1, 2}) join(rank);
  harness_.lose(3, "silence for 5s");
  EXPECT_EQ(harness_.said(), "begin>1 begin>2 spare>3") << "nobody misses a spare";
  harness_.lose(2, "silence for 5s");
  ASSERT_EQ(harness_.said(), "lost>1");
  EXPECT_EQ(harness_.sent[0].message.spare, "") << "it is lost, too";
  end_round(1, 0);
  harness_.pass(0s);
  EXPECT_EQ(harness_.said(), "over>1 ended>1") << "nobody else can come";
}

TEST_F(Spares, HearOfTheEnd) {
  for (const int rank : {0, 1, 2}) join(rank);
  for (const ConnectionId id : {1U, 2U}) harness_.say(id, Kind::kReport);
  (void)harness_.said();
  for (const ConnectionId id : {1U, 2U}) harness_.say(id, Kind::kLeave);
  EXPECT_EQ(harness_.said(), "ended>3");
}

TEST_F(TwoSpares, TakeThePlacesOfTwoEachItsOwn) {
  for (const int rank : {0, 1, 2}) join(rank);
  EXPECT_EQ(harness_.said(), "") << "one is missing";
  join(3);
  EXPECT_EQ(harness_.said(), "begin>1 begin>2 spare>3 spare>4");
  harness_.lose(2, "a");
  harness_.lose(1, "b");
  ASSERT_EQ(harness_.said(), "lost>1 begin>3 begin>4");
  EXPECT_EQ(harness_.sent[0].message.spare, "node-10.0.0.3");
}

}  // namespace
}  // namespace lrun::launcher
