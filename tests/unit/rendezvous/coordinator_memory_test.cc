// Copies of files in memory, as rounds pass them on.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "coordinator_harness.h"
#include "rendezvous/job_state.h"

namespace lrun::launcher {
namespace {

using Harness = test::CoordinatorHarness;
using Kind = LauncherMessage::Kind;
using Keeps = std::vector<FileOwner>;
using Lost = std::vector<LostFiles>;

std::string host_address(int host) { return "10.0.0." + std::to_string(host); }
std::string owner_at(int host) { return "token of " + host_address(host); }

JoinRecord copying_node(int host) {
  JoinRecord record = test::node_at(host_address(host));
  record.copy_port = 7000 + host;
  return record;
}

void be_ready_with(Harness& harness, int host, int round, Keeps keeps = {}) {
  harness.coordinator.received(static_cast<ConnectionId>(host),
                               {.kind = Kind::kReady, .round = round, .keeps = std::move(keeps)}, harness.now);
}

void all_report(Harness& harness, const std::vector<ConnectionId>& hosts, int round) {
  for (const ConnectionId host : hosts) harness.say(host, Kind::kReport, round);
}

/// What the round says to the node.
Member self_of(const Harness& harness, ConnectionId host) {
  for (const test::Told& told : harness.sent) {
    if (told.to == host && told.message.membership) return told.message.membership->self;
  }
  ADD_FAILURE() << "no round begins for " << host;
  return {};
}

/// A job of three with copies, and one node that waits.
Harness three_and_a_spare() {
  Harness harness(3, 3);
  for (int host = 1; host <= 4; ++host) harness.join(static_cast<ConnectionId>(host), copying_node(host));
  EXPECT_EQ(harness.said(), "begin>1 begin>2 begin>3 spare>4");
  return harness;
}

TEST(CoordinatorOfMemory, TellsEachNodeItsNeighbour) {
  const Harness harness = three_and_a_spare();
  for (int host = 1; host <= 3; ++host) {
    const Member self = self_of(harness, static_cast<ConnectionId>(host));
    EXPECT_EQ(self.neighbour, host_address(host % 3 + 1));
    EXPECT_EQ(self.neighbour_port, 7000 + host % 3 + 1);
    EXPECT_EQ(self.inherits, Lost());
  }
}

TEST(CoordinatorOfMemory, TellsTheNewcomerWhereTheFilesOfTheLostNodeAre) {
  Harness harness = three_and_a_spare();
  harness.lose(2, "silence for 5s");
  all_report(harness, {1, 3}, 0);
  be_ready_with(harness, 1, 1, {{owner_at(3), 2}});
  be_ready_with(harness, 3, 1, {{owner_at(2), 1}});
  ASSERT_EQ(harness.said(), "lost>1 lost>3 over>1 over>3 begin>1 begin>3 begin>4");
  const Lost lost{{{owner_at(2), 1}, host_address(3), 7003}};
  const Member newcomer = self_of(harness, 4);
  EXPECT_EQ(newcomer.node_rank, 2);
  EXPECT_EQ(newcomer.inherits, lost);
  EXPECT_EQ(newcomer.neighbour, host_address(1));
  EXPECT_EQ(self_of(harness, 3).inherits, lost) << "it has the rank of the lost one now";
  EXPECT_EQ(self_of(harness, 1).inherits, Lost());
}

TEST(CoordinatorOfMemory, BelievesTheLastThatANodeSaid) {
  Harness harness = three_and_a_spare();
  all_report(harness, {1, 2, 3}, 0);
  for (int host = 1; host <= 3; ++host)
    be_ready_with(harness, host, 1, {{owner_at((host + 1) % 3 + 1), (host + 1) % 3}});
  ASSERT_EQ(harness.said(), "over>1 over>2 over>3 begin>1 begin>2 begin>3");
  EXPECT_EQ(self_of(harness, 3).inherits, Lost()) << "no node is lost";
  harness.lose(2, "silence for 5s");
  all_report(harness, {1, 3}, 1);
  be_ready_with(harness, 1, 2);
  be_ready_with(harness, 3, 2);
  ASSERT_EQ(harness.said(), "lost>1 lost>3 over>1 over>3 begin>1 begin>3 begin>4");
  EXPECT_EQ(self_of(harness, 4).inherits, Lost()) << "it does not keep them any more";
}

TEST(CoordinatorOfMemory, TellsNothingWhereNodesHaveNoCopier) {
  Harness harness(2, 2);
  harness.join_two();
  for (const ConnectionId host : {1U, 2U}) {
    EXPECT_EQ(self_of(harness, host).neighbour, "");
    EXPECT_EQ(self_of(harness, host).neighbour_port, 0);
  }
}

TEST(CoordinatorOfMemory, PassesFilesOfALostLeaderOn) {
  Harness harness(2, 2);
  const JobState state{.round = 3, .leader = owner_at(1), .members = {owner_at(1), owner_at(2)}};
  harness.coordinator.resume(state, std::nullopt, harness.now);
  for (const bool is_member : {true, false}) {
    const int host = is_member ? 2 : 5;
    JoinRecord record = copying_node(host);
    LauncherMessage join{.kind = Kind::kJoin, .round = is_member ? 3 : 0, .join = record};
    join.resumes = is_member;
    join.was_spare = !is_member;
    harness.coordinator.received(static_cast<ConnectionId>(host), join, harness.now);
  }
  EXPECT_EQ(harness.said(), "spare>5");
  be_ready_with(harness, 2, 4, {{owner_at(1), 0}});
  harness.pass(Duration(5000));
  ASSERT_EQ(harness.said(), "begin>2 begin>5");
  const Lost lost{{{owner_at(1), 0}, host_address(2), 7002}};
  EXPECT_EQ(self_of(harness, 5).inherits, lost);
  EXPECT_EQ(self_of(harness, 2).inherits, lost) << "it has the rank of the lost one now";
}

}  // namespace
}  // namespace lrun::launcher
