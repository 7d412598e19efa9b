// Members of a round go on without its leader, and a leader stops that may have lost the majority of them.
#include <gtest/gtest.h>

#include <string>

#include "coordinator_harness.h"

namespace lrun::launcher {
namespace {

using test::CoordinatorHarness;
using test::node_at;
using Kind = LauncherMessage::Kind;

/// A rendezvous that goes on after round 3 of so many members, of which that of rank 0 led.
CoordinatorHarness with_ballot(int members, bool proved) {
  CoordinatorHarness harness(1, 4);
  harness.guard_majority();
  harness.coordinator.resume({.round = 3, .attempt = 1},
                             Ballot{.members = members, .proved = proved, .first_in_line = true}, harness.now);
  return harness;
}

void vote(CoordinatorHarness& harness, int rank, int round = 3) {
  JoinRecord record = node_at("10.0.0." + std::to_string(rank + 1));
  record.min_nodes = 1;
  record.max_nodes = 4;
  const auto id = static_cast<ConnectionId>(rank + 1);
  harness.coordinator.received(
      id, {.kind = Kind::kJoin, .round = round, .resumes = true, .node_rank = rank, .join = record}, harness.now);
  harness.coordinator.received(id, {.kind = Kind::kReady, .round = round + 1, .attempt = 1}, harness.now);
}

TEST(Coordinator, BeginsWhereEnoughMembersHaveComeBack) {
  CoordinatorHarness harness = with_ballot(3, false);
  vote(harness, 1);
  harness.pass(Duration(7000));
  EXPECT_EQ(harness.said(), "") << "one of three is no majority";
  EXPECT_EQ(harness.coordinator.deadline(), harness.now + Duration(3000));
  vote(harness, 2);
  harness.pass(Duration(1000));
  EXPECT_EQ(harness.said(), "begin>2 begin>3");
}

TEST(Coordinator, EndsAJobOfWhichNoMajorityComesBack) {
  CoordinatorHarness harness = with_ballot(2, false);
  vote(harness, 1);
  harness.join(7, node_at("10.0.0.7"));
  vote(harness, 0, 2);
  harness.pass(Duration(9999));
  EXPECT_EQ(harness.said(), "spare>7") << "neither newcomers nor who was not in the round count";
  harness.pass(Duration(1));
  EXPECT_EQ(harness.said(), "no_meeting>7 ended>1 ended>2") << "who is no member may begin the job elsewhere";
  for (const test::Told& told : harness.sent) {
    EXPECT_EQ(told.message.text, no_majority_text(1, 2));
  }
  harness.join(8, node_at("10.0.0.8"));
  EXPECT_EQ(harness.said(), "no_meeting>8") << "it was invited a moment ago";
  EXPECT_TRUE(harness.coordinator.over());
}

TEST(Coordinator, BeginsAloneWhereTheOtherIsDead) {
  CoordinatorHarness harness = with_ballot(2, true);
  vote(harness, 1);
  EXPECT_EQ(harness.said(), "");
  harness.pass(Duration(1000));
  EXPECT_EQ(harness.said(), "begin>2") << "all that are left are back: only the last call is waited for";
}

/// Three members, one of which leads.
CoordinatorHarness guarded() {
  CoordinatorHarness harness(1, 3);
  harness.led_by("token of 10.0.0.2", true);
  for (const int host : {2, 1, 3})
    harness.join(static_cast<ConnectionId>(host), node_at("10.0.0." + std::to_string(host)));
  EXPECT_EQ(harness.said(), "begin>1 begin>2 begin>3");
  EXPECT_EQ(harness.sent.front().message.membership->leader, 1);
  return harness;
}

TEST(Coordinator, EndsWhereMoreThanHalfOfTheMembersMayGoOnElsewhere) {
  CoordinatorHarness harness = guarded();
  harness.coordinator.left(1, "silence", harness.now, harness.now, true);
  EXPECT_EQ(harness.said(), "lost>2 lost>3");
  harness.say(3, Kind::kLeaderless);
  EXPECT_EQ(harness.said(), "lost>2 ended>2");
  EXPECT_EQ(harness.sent.back().message.text, no_majority_text(1, 3));
}

TEST(Coordinator, GoesOnWithoutThoseThatEndedOrLeft) {
  CoordinatorHarness harness = guarded();
  harness.lose(1, "its launcher ended");
  harness.say(3, Kind::kDropOut);
  EXPECT_EQ(harness.said(), "lost>2 lost>3 lost>2");
  harness.say(2, Kind::kReport);
  harness.ready(2, 1, 0);
  harness.pass(Duration(1000));
  EXPECT_EQ(harness.said(), "over>2 begin>2");
}

TEST(Coordinator, KnowsALauncherByItsLatestConnection) {
  CoordinatorHarness harness(2, 2);
  harness.join(5, node_at("10.0.0.1"));
  harness.join(3, node_at("10.0.0.1"));
  EXPECT_EQ(harness.said(), "refused>3");
  harness.join(6, node_at("10.0.0.2"));
  EXPECT_EQ(harness.said(), "begin>5 begin>6");
}

/// Once the round is known to all, all may go on from it.
TEST(Coordinator, SaysWhenAllKnowOfARound) {
  CoordinatorHarness harness = guarded();
  EXPECT_TRUE(harness.sent.front().message.known_to_all) << "there was none before it";
  for (const ConnectionId id : {1U, 2U, 3U}) harness.say(id, Kind::kReport);
  for (const ConnectionId id : {1U, 2U, 3U}) harness.ready(id, 1, 0);
  EXPECT_EQ(harness.said(), "over>1 over>2 over>3 begin>1 begin>2 begin>3");
  EXPECT_TRUE(harness.sent.back().message.known_to_all) << "its members are the same";
  harness.lose(1, "its launcher ended");
  for (const ConnectionId id : {2U, 3U}) harness.say(id, Kind::kReport, 1);
  for (const ConnectionId id : {2U, 3U}) harness.ready(id, 2, 0);
  harness.pass(Duration(1000));
  EXPECT_EQ(harness.said(), "lost>2 lost>3 over>2 over>3 begin>2 begin>3");
  EXPECT_FALSE(harness.sent.back().message.known_to_all);
  for (int i = 0; i < 2; ++i) harness.say(2, Kind::kBegun, 2);
  EXPECT_EQ(harness.said(), "");
  harness.say(3, Kind::kBegun, 2);
  EXPECT_EQ(harness.said(), "settled>2 settled>3");
}

TEST(Coordinator, NeedsNoWordOfARoundOfAllThatAreLeft) {
  for (const bool all : {false, true}) {
    CoordinatorHarness harness = with_ballot(4, true);
    for (const int rank : {1, 2}) vote(harness, rank);
    if (all) vote(harness, 3);
    harness.pass(Duration(5000));
    EXPECT_EQ(harness.said(), all ? "begin>2 begin>3 begin>4" : "begin>2 begin>3");
    EXPECT_EQ(harness.sent.front().message.known_to_all, all);
  }
}

}  // namespace
}  // namespace lrun::launcher
