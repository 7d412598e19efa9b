#include "rendezvous/failover.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "launcher_records.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;

constexpr Duration kHeartbeatOfFailover(5000);
const SteadyTime kLost{std::chrono::seconds(100)};

std::string member_token(int host) { return "token of 10.0.0." + std::to_string(host); }

Roster roster_of(std::initializer_list<int> hosts) {
  Roster roster;
  for (const int host : hosts) {
    roster.add(static_cast<ConnectionId>(host), {.record = test::node_at("10.0.0." + std::to_string(host))});
  }
  return roster;
}

TEST(Failover, WaitsForAllMembersButTheLostLeader) {
  const Failover failover(
      {.round = 3, .leader = member_token(1), .members = {member_token(1), member_token(2), member_token(3)}},
      std::nullopt, kLost);
  EXPECT_TRUE(failover.waits(roster_of({2}), kHeartbeatOfFailover, kLost));
  EXPECT_FALSE(failover.waits(roster_of({2, 3}), kHeartbeatOfFailover, kLost));
  EXPECT_FALSE(failover.waits(roster_of({2}), kHeartbeatOfFailover, kLost + kHeartbeatOfFailover)) << "not for ever";
  EXPECT_EQ(failover.end_of_wait(kHeartbeatOfFailover), kLost + kHeartbeatOfFailover);
  EXPECT_TRUE(failover.is_carried()) << "etcd has chosen the leader";
}

TEST(Failover, WaitsWhereNobodyKnowsTheMembers) {
  const Failover failover({.round = 3}, std::nullopt, kLost);
  EXPECT_TRUE(failover.waits(roster_of({1, 2, 3}), kHeartbeatOfFailover, kLost));
}

TEST(Failover, CountsAVoteForEachMemberOfTheRound) {
  Failover failover({.round = 3}, Ballot{.members = 4, .leader = 0}, kLost);
  failover.voted(7, 1);
  failover.voted(8, 1);
  EXPECT_EQ(failover.votes(), 1) << "one member that connected twice";
  failover.voted(9, 0);
  failover.voted(10, std::nullopt);
  failover.voted(11, 4);
  EXPECT_EQ(failover.votes(), 1) << "neither the lost leader's rank nor a stranger's";
  failover.voted(12, 2);
  EXPECT_FALSE(failover.is_carried());
  failover.voted(13, 3);
  EXPECT_TRUE(failover.is_carried());
  EXPECT_TRUE(failover.all_are_back(Roster()));
  failover.left(13);
  EXPECT_FALSE(failover.is_carried());
}

TEST(Failover, HasFailedAfterTwoHeartbeatsWithoutAMajority) {
  Failover failover({.round = 3}, Ballot{.members = 3}, kLost);
  failover.voted(1, 1);
  EXPECT_FALSE(failover.has_failed(kHeartbeatOfFailover, kLost + 2 * kHeartbeatOfFailover - 1ms));
  EXPECT_TRUE(failover.has_failed(kHeartbeatOfFailover, failover.end_of_ballot(kHeartbeatOfFailover)));
  failover.voted(2, 2);
  EXPECT_FALSE(failover.has_failed(kHeartbeatOfFailover, kLost + 3 * kHeartbeatOfFailover));
}

}  // namespace
}  // namespace lrun::launcher
