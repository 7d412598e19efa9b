// Members of a round go on without its leader, and a leader stops that may have lost the majority of them.
#include <gtest/gtest.h>

#include <string>

#include "coordinator_harness.h"

namespace lrun::launcher {
namespace {

using test::CoordinatorHarness;
using test::node_at;
using Kind = LauncherMessage::Kind;

/// A meeting that goes on after round 3 of so many members, of which that of rank 0 held the last one.
CoordinatorHarness with_ballot(int members, bool proved) {
  CoordinatorHarness meeting(1, 4);
  meeting.guard_majority();
  meeting.coordinator.resume({.round = 3, .attempt = 1},
                             Ballot{.members = members, .proved = proved, .first_in_line = true}, meeting.now);
  return meeting;
}

void vote(CoordinatorHarness& meeting, int rank, int round = 3) {
  JoinRecord record = node_at("10.0.0." + std::to_string(rank + 1));
  record.min_nodes = 1;
  record.max_nodes = 4;
  const auto id = static_cast<LauncherId>(rank + 1);
  meeting.coordinator.received(
      id, {.kind = Kind::kJoin, .round = round, .resumes = true, .node_rank = rank, .join = record}, meeting.now);
  meeting.coordinator.received(id, {.kind = Kind::kReady, .round = round + 1, .attempt = 1}, meeting.now);
}

TEST(Coordinator, BeginsWhereEnoughMembersHaveComeBack) {
  CoordinatorHarness meeting = with_ballot(3, false);
  vote(meeting, 1);
  meeting.pass(Duration(7000));
  EXPECT_EQ(meeting.said(), "") << "one of three is no majority";
  EXPECT_EQ(meeting.coordinator.deadline(), meeting.now + Duration(3000));
  vote(meeting, 2);
  meeting.pass(Duration(1000));
  EXPECT_EQ(meeting.said(), "begin>2 begin>3");
}

TEST(Coordinator, EndsAJobOfWhichNoMajorityComesBack) {
  CoordinatorHarness meeting = with_ballot(2, false);
  vote(meeting, 1);
  meeting.join(7, node_at("10.0.0.7"));
  vote(meeting, 0, 2);
  meeting.pass(Duration(9999));
  EXPECT_EQ(meeting.said(), "spare>7") << "neither newcomers nor who was not in the round count";
  meeting.pass(Duration(1));
  EXPECT_EQ(meeting.said(), "no_meeting>7 ended>1 ended>2") << "who is no member may begin the job elsewhere";
  for (const test::Told& told : meeting.sent) {
    EXPECT_EQ(told.message.text,
              "1 of 2 nodes is no majority, and a job that is cut off must not go on twice; three nodes, or "
              "'--rdzv-backend etcd', survive the silence of one");
  }
  meeting.join(8, node_at("10.0.0.8"));
  EXPECT_EQ(meeting.said(), "no_meeting>8") << "it was invited a moment ago";
  EXPECT_TRUE(meeting.coordinator.over());
}

TEST(Coordinator, BeginsAloneWhereTheOtherIsDead) {
  CoordinatorHarness meeting = with_ballot(2, true);
  vote(meeting, 1);
  EXPECT_EQ(meeting.said(), "");
  meeting.pass(Duration(1000));
  EXPECT_EQ(meeting.said(), "begin>2") << "all that are left are back: only the last call is waited for";
}

/// Three members and who of them holds the meeting.
CoordinatorHarness guarded() {
  CoordinatorHarness meeting(1, 3);
  meeting.led_by("token of 10.0.0.2", true);
  for (const int host : {2, 1, 3})
    meeting.join(static_cast<LauncherId>(host), node_at("10.0.0." + std::to_string(host)));
  EXPECT_EQ(meeting.said(), "begin>1 begin>2 begin>3");
  EXPECT_EQ(meeting.sent.front().message.membership->leader, 1);
  return meeting;
}

TEST(Coordinator, EndsWhereMoreThanHalfOfTheMembersMayGoOnElsewhere) {
  CoordinatorHarness meeting = guarded();
  meeting.coordinator.left(1, "silence", meeting.now, meeting.now, true);
  EXPECT_EQ(meeting.said(), "lost>2 lost>3");
  meeting.say(3, Kind::kLeaderless);
  EXPECT_EQ(meeting.said(), "lost>2 ended>2");
  EXPECT_EQ(meeting.sent.back().message.text,
            "1 of 3 nodes is no majority, and a job that is cut off must not go on twice");
}

TEST(Coordinator, GoesOnWithoutThoseThatEndedOrLeft) {
  CoordinatorHarness meeting = guarded();
  meeting.lose(1, "its launcher ended");
  meeting.say(3, Kind::kDropOut);
  EXPECT_EQ(meeting.said(), "lost>2 lost>3 lost>2");
  meeting.say(2, Kind::kReport);
  meeting.ready(2, 1, 0);
  meeting.pass(Duration(1000));
  EXPECT_EQ(meeting.said(), "over>2 begin>2");
}

TEST(Coordinator, KnowsALauncherByItsLatestConnection) {
  CoordinatorHarness meeting(2, 2);
  meeting.join(5, node_at("10.0.0.1"));
  meeting.join(3, node_at("10.0.0.1"));
  EXPECT_EQ(meeting.said(), "refused>3");
  meeting.join(6, node_at("10.0.0.2"));
  EXPECT_EQ(meeting.said(), "begin>5 begin>6");
}

/// 'settled': all may go on from this round.
TEST(Coordinator, SaysWhenAllKnowOfARound) {
  CoordinatorHarness meeting = guarded();
  EXPECT_TRUE(meeting.sent.front().message.settled) << "there was none before it";
  for (const LauncherId id : {1U, 2U, 3U}) meeting.say(id, Kind::kReport);
  for (const LauncherId id : {1U, 2U, 3U}) meeting.ready(id, 1, 0);
  EXPECT_EQ(meeting.said(), "over>1 over>2 over>3 begin>1 begin>2 begin>3");
  EXPECT_TRUE(meeting.sent.back().message.settled) << "its members are the same";
  meeting.lose(1, "its launcher ended");
  for (const LauncherId id : {2U, 3U}) meeting.say(id, Kind::kReport, 1);
  for (const LauncherId id : {2U, 3U}) meeting.ready(id, 2, 0);
  meeting.pass(Duration(1000));
  EXPECT_EQ(meeting.said(), "lost>2 lost>3 over>2 over>3 begin>2 begin>3");
  EXPECT_FALSE(meeting.sent.back().message.settled);
  for (int i = 0; i < 2; ++i) meeting.say(2, Kind::kBegun, 2);
  EXPECT_EQ(meeting.said(), "");
  meeting.say(3, Kind::kBegun, 2);
  EXPECT_EQ(meeting.said(), "settled>2 settled>3");
}

TEST(Coordinator, NeedsNoWordOfARoundOfAllThatAreLeft) {
  for (const bool all : {false, true}) {
    CoordinatorHarness meeting = with_ballot(4, true);
    for (const int rank : {1, 2}) vote(meeting, rank);
    if (all) vote(meeting, 3);
    meeting.pass(Duration(5000));
    EXPECT_EQ(meeting.said(), all ? "begin>2 begin>3 begin>4" : "begin>2 begin>3");
    EXPECT_EQ(meeting.sent.front().message.settled, all);
  }
}

}  // namespace
}  // namespace lrun::launcher
