// A rendezvous at the endpoint of a job that meets elsewhere already.
#include <gtest/gtest.h>

#include <string>

#include "coordinator_harness.h"

namespace lrun::launcher {
namespace {

using test::CoordinatorHarness;
using test::node_at;
using Kind = LauncherMessage::Kind;

/// A leader of the same job.
JoinRecord leader_at(const std::string& address, int port = 7001) {
  JoinRecord record = node_at(address);
  record.min_nodes = 1;
  record.max_nodes = 3;
  record.standby_port = port;
  return record;
}

void invite(CoordinatorHarness& harness, ConnectionId id, const JoinRecord& leader) {
  harness.coordinator.received(id, {.kind = Kind::kInvite, .round = 5, .join = leader}, harness.now);
}

TEST(Invitation, SendsOnWhoWaitsAndWhoComesLater) {
  CoordinatorHarness harness(1, 3);
  harness.join(1, node_at("10.0.0.1"));
  invite(harness, 9, leader_at("10.0.0.2"));
  EXPECT_EQ(harness.said(), "elsewhere>1");
  EXPECT_EQ(harness.sent.front().message.address, "10.0.0.2");
  EXPECT_EQ(harness.sent.front().message.port, 7001);
  EXPECT_TRUE(harness.sent.front().last);
  harness.join(2, node_at("10.0.0.3"));
  EXPECT_EQ(harness.said(), "elsewhere>2");
  harness.pass(Duration(600'000));
  EXPECT_EQ(harness.said(), "") << "no round begins here";
  EXPECT_TRUE(harness.coordinator.over()) << "nobody is waited for";
}

TEST(Invitation, SendsOnToTheLatestPlace) {
  CoordinatorHarness harness(1, 3);
  harness.join(1, node_at("10.0.0.1"));
  invite(harness, 8, leader_at("10.0.0.2"));
  invite(harness, 9, leader_at("10.0.0.3", 7002));
  EXPECT_EQ(harness.said(), "elsewhere>1");
  harness.join(2, node_at("10.0.0.4"));
  EXPECT_EQ(harness.said(), "elsewhere>2");
  EXPECT_EQ(harness.sent.front().message.port, 7002);
}

TEST(Invitation, ToNothingIsForgotten) {
  CoordinatorHarness harness(1, 3);
  harness.led_by("token of 10.0.0.1");
  harness.join(1, node_at("10.0.0.1"));
  invite(harness, 9, leader_at("10.0.0.2"));
  EXPECT_EQ(harness.said(), "elsewhere>1");
  harness.now += Duration(3'600'000);
  harness.coordinator.redirect_to(std::nullopt, harness.now);
  harness.join(2, node_at("10.0.0.3"));
  EXPECT_EQ(harness.said(), "") << "the launcher that holds the meeting comes first";
  harness.join(3, node_at("10.0.0.1"));
  harness.pass(Duration(999));
  EXPECT_EQ(harness.said(), "") << "others may still come";
  harness.pass(Duration(1));
  EXPECT_EQ(harness.said(), "begin>3 begin>2");
}

TEST(Invitation, IsNotTakenByAJobThatHasBegun) {
  CoordinatorHarness harness(1, 3);
  harness.join(1, node_at("10.0.0.1"));
  harness.pass(Duration(1000));
  EXPECT_EQ(harness.said(), "begin>1");
  invite(harness, 9, leader_at("10.0.0.2"));
  EXPECT_EQ(harness.said(), "has_begun>9");
  EXPECT_FALSE(harness.sent.front().last) << "it hears of our end";
}

TEST(Invitation, OfAnotherJobIsNotTaken) {
  CoordinatorHarness harness(1, 3);
  harness.join(1, node_at("10.0.0.1"));
  JoinRecord other = leader_at("10.0.0.2");
  other.run_name = "other";
  JoinRecord larger = leader_at("10.0.0.2");
  larger.max_nodes = 4;
  JoinRecord unlike = leader_at("10.0.0.2");
  unlike.settings = "strategy dp";
  for (const JoinRecord& record : {other, larger, unlike}) {
    invite(harness, 9, record);
    EXPECT_EQ(harness.said(), "refused>9");
  }
  invite(harness, 9, leader_at("10.0.0.2"));
  EXPECT_EQ(harness.said(), "elsewhere>1");
  invite(harness, 9, other);
  EXPECT_EQ(harness.said(), "refused>9") << "also where the job is met elsewhere";
  EXPECT_EQ(harness.coordinator.redirect(), (RendezvousAddress{"10.0.0.2", 7001}));
}

TEST(Invitation, WaitsForTheLeadersOwnLauncher) {
  for (const bool stays : {true, false}) {
    CoordinatorHarness harness(1, 3);
    harness.led_by("token of 10.0.0.1", false, {});
    invite(harness, 9, leader_at("10.0.0.2"));
    EXPECT_EQ(harness.said(), "") << "which job this is is not known yet";
    if (!stays) harness.lose(9, "its launcher ended");
    harness.join(1, node_at("10.0.0.1"));
    EXPECT_EQ(harness.said(), stays ? "elsewhere>1" : "");
  }
}

/// It was given up, and will find that out; it must not be taken for one that was started again.
TEST(Invitation, OfAMemberIsNotAnswered) {
  CoordinatorHarness harness(1, 3);
  harness.guard_majority();
  harness.join(1, node_at("10.0.0.1"));
  harness.join(2, node_at("10.0.0.2"));
  harness.join(3, node_at("10.0.0.3"));
  EXPECT_EQ(harness.said(), "begin>1 begin>2 begin>3");
  harness.coordinator.left(2, "silence", harness.now, harness.now, true);
  EXPECT_EQ(harness.said(), "lost>1 lost>3");
  invite(harness, 9, leader_at("10.0.0.2"));
  EXPECT_EQ(harness.said(), "");
}

TEST(Invitation, IsNotNeededAfterTheJob) {
  CoordinatorHarness harness(1, 3);
  harness.join(1, node_at("10.0.0.1"));
  harness.pass(Duration(1000));
  harness.say(1, Kind::kReport);
  harness.say(1, Kind::kLeave);
  EXPECT_EQ(harness.said(), "begin>1 over>1");
  invite(harness, 9, leader_at("10.0.0.2"));
  EXPECT_EQ(harness.said(), "");
}

TEST(Coordinator, TellsSparesTheSuccessors) {
  CoordinatorHarness harness(2, 2);
  harness.led_by("token of 10.0.0.1", true);
  for (const int host : {1, 2, 3, 4}) {
    JoinRecord record = node_at("10.0.0." + std::to_string(host));
    record.standby_port = host == 1 ? 0 : 7000 + host;
    harness.join(static_cast<ConnectionId>(host), record);
  }
  EXPECT_EQ(harness.said(), "begin>1 begin>2 spare>3 spare>4");
  const auto ports = [&] {
    std::string text;
    for (const Successor& successor : harness.sent.back().message.successors) {
      text += " " + std::to_string(successor.standby_port);
    }
    return text;
  };
  EXPECT_EQ(ports(), " 7002");
  harness.lose(2, "its launcher ended");
  harness.say(1, Kind::kReport);
  harness.ready(1, 1, 0);
  EXPECT_EQ(harness.said(), "lost>1 over>1 begin>1 begin>3 spare>4");
  EXPECT_EQ(ports(), " 7003");
  EXPECT_EQ(harness.sent.back().message.text, "") << "nothing that a person has to read";
}

}  // namespace
}  // namespace lrun::launcher
