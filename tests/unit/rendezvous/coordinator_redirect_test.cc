// A meeting at the endpoint of a job that is met elsewhere already.
#include <gtest/gtest.h>

#include <string>

#include "coordinator_harness.h"

namespace lrun::launcher {
namespace {

using test::CoordinatorHarness;
using test::node_at;
using Kind = LauncherMessage::Kind;

/// A launcher that holds the meeting of the same job.
JoinRecord holder_at(const std::string& address, int port = 7001) {
  JoinRecord record = node_at(address);
  record.min_nodes = 1;
  record.max_nodes = 3;
  record.standby_port = port;
  return record;
}

void invite(CoordinatorHarness& meeting, LauncherId id, const JoinRecord& holder) {
  meeting.coordinator.received(id, {.kind = Kind::kInvite, .round = 5, .join = holder}, meeting.now);
}

TEST(Invitation, SendsOnWhoWaitsAndWhoComesLater) {
  CoordinatorHarness meeting(1, 3);
  meeting.join(1, node_at("10.0.0.1"));
  invite(meeting, 9, holder_at("10.0.0.2"));
  EXPECT_EQ(meeting.said(), "elsewhere>1");
  EXPECT_EQ(meeting.sent.front().message.address, "10.0.0.2");
  EXPECT_EQ(meeting.sent.front().message.port, 7001);
  EXPECT_TRUE(meeting.sent.front().last);
  meeting.join(2, node_at("10.0.0.3"));
  EXPECT_EQ(meeting.said(), "elsewhere>2");
  meeting.pass(Duration(600'000));
  EXPECT_EQ(meeting.said(), "") << "no round begins here";
  EXPECT_TRUE(meeting.coordinator.over()) << "nobody is waited for";
}

TEST(Invitation, SendsOnToTheLatestPlace) {
  CoordinatorHarness meeting(1, 3);
  meeting.join(1, node_at("10.0.0.1"));
  invite(meeting, 8, holder_at("10.0.0.2"));
  invite(meeting, 9, holder_at("10.0.0.3", 7002));
  EXPECT_EQ(meeting.said(), "elsewhere>1");
  meeting.join(2, node_at("10.0.0.4"));
  EXPECT_EQ(meeting.said(), "elsewhere>2");
  EXPECT_EQ(meeting.sent.front().message.port, 7002);
}

TEST(Invitation, ToNothingIsForgotten) {
  CoordinatorHarness meeting(1, 3);
  meeting.led_by("token of 10.0.0.1");
  meeting.join(1, node_at("10.0.0.1"));
  invite(meeting, 9, holder_at("10.0.0.2"));
  EXPECT_EQ(meeting.said(), "elsewhere>1");
  meeting.now += Duration(3'600'000);
  meeting.coordinator.redirect_to(std::nullopt, meeting.now);
  meeting.join(2, node_at("10.0.0.3"));
  EXPECT_EQ(meeting.said(), "") << "the launcher that holds the meeting comes first";
  meeting.join(3, node_at("10.0.0.1"));
  meeting.pass(Duration(999));
  EXPECT_EQ(meeting.said(), "") << "others may still come";
  meeting.pass(Duration(1));
  EXPECT_EQ(meeting.said(), "begin>3 begin>2");
}

TEST(Invitation, IsNotTakenByAJobThatHasBegun) {
  CoordinatorHarness meeting(1, 3);
  meeting.join(1, node_at("10.0.0.1"));
  meeting.pass(Duration(1000));
  EXPECT_EQ(meeting.said(), "begin>1");
  invite(meeting, 9, holder_at("10.0.0.2"));
  EXPECT_EQ(meeting.said(), "has_begun>9");
  EXPECT_FALSE(meeting.sent.front().last) << "it hears of our end";
}

TEST(Invitation, OfAnotherJobIsNotTaken) {
  CoordinatorHarness meeting(1, 3);
  meeting.join(1, node_at("10.0.0.1"));
  JoinRecord other = holder_at("10.0.0.2");
  other.run_name = "other";
  JoinRecord larger = holder_at("10.0.0.2");
  larger.max_nodes = 4;
  JoinRecord unlike = holder_at("10.0.0.2");
  unlike.settings = "strategy dp";
  for (const JoinRecord& record : {other, larger, unlike}) {
    invite(meeting, 9, record);
    EXPECT_EQ(meeting.said(), "refused>9");
  }
  invite(meeting, 9, holder_at("10.0.0.2"));
  EXPECT_EQ(meeting.said(), "elsewhere>1");
  invite(meeting, 9, other);
  EXPECT_EQ(meeting.said(), "refused>9") << "also where the job is met elsewhere";
  EXPECT_EQ(meeting.coordinator.redirect(), (RendezvousAddress{"10.0.0.2", 7001}));
}

TEST(Invitation, WaitsForTheLauncherThatHoldsTheMeeting) {
  for (const bool stays : {true, false}) {
    CoordinatorHarness meeting(1, 3);
    meeting.led_by("token of 10.0.0.1", false, {});
    invite(meeting, 9, holder_at("10.0.0.2"));
    EXPECT_EQ(meeting.said(), "") << "which job this is is not known yet";
    if (!stays) meeting.lose(9, "its launcher ended");
    meeting.join(1, node_at("10.0.0.1"));
    EXPECT_EQ(meeting.said(), stays ? "elsewhere>1" : "");
  }
}

/// It was given up, and will find that out; it must not be taken for one that was started again.
TEST(Invitation, OfAMemberIsNotAnswered) {
  CoordinatorHarness meeting(1, 3);
  meeting.guard_majority();
  meeting.join(1, node_at("10.0.0.1"));
  meeting.join(2, node_at("10.0.0.2"));
  meeting.join(3, node_at("10.0.0.3"));
  EXPECT_EQ(meeting.said(), "begin>1 begin>2 begin>3");
  meeting.coordinator.left(2, "silence", meeting.now, meeting.now, true);
  EXPECT_EQ(meeting.said(), "lost>1 lost>3");
  invite(meeting, 9, holder_at("10.0.0.2"));
  EXPECT_EQ(meeting.said(), "");
}

TEST(Invitation, IsNotNeededAfterTheJob) {
  CoordinatorHarness meeting(1, 3);
  meeting.join(1, node_at("10.0.0.1"));
  meeting.pass(Duration(1000));
  meeting.say(1, Kind::kReport);
  meeting.say(1, Kind::kLeave);
  EXPECT_EQ(meeting.said(), "begin>1 over>1");
  invite(meeting, 9, holder_at("10.0.0.2"));
  EXPECT_EQ(meeting.said(), "");
}

TEST(Coordinator, TellsSparesWhoMayHoldTheMeetingNext) {
  CoordinatorHarness meeting(2, 2);
  meeting.led_by("token of 10.0.0.1", true);
  for (const int host : {1, 2, 3, 4}) {
    JoinRecord record = node_at("10.0.0." + std::to_string(host));
    record.standby_port = host == 1 ? 0 : 7000 + host;
    meeting.join(static_cast<LauncherId>(host), record);
  }
  EXPECT_EQ(meeting.said(), "begin>1 begin>2 spare>3 spare>4");
  const auto ports = [&] {
    std::string text;
    for (const Successor& successor : meeting.sent.back().message.successors) {
      text += " " + std::to_string(successor.standby_port);
    }
    return text;
  };
  EXPECT_EQ(ports(), " 7002");
  meeting.lose(2, "its launcher ended");
  meeting.say(1, Kind::kReport);
  meeting.ready(1, 1, 0);
  EXPECT_EQ(meeting.said(), "lost>1 over>1 begin>1 begin>3 spare>4");
  EXPECT_EQ(ports(), " 7003");
  EXPECT_EQ(meeting.sent.back().message.text, "") << "nothing that a person has to read";
}

}  // namespace
}  // namespace lrun::launcher
