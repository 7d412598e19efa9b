#include <gtest/gtest.h>

#include "coordinator_harness.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;
using Kind = LauncherMessage::Kind;
using test::node_at;
using Meeting = test::CoordinatorHarness;

TEST(Coordinator, BeginsWhenAllAreThere) {
  Meeting meeting;
  meeting.join(1, node_at("10.0.0.2"));
  EXPECT_EQ(meeting.said(), "");
  meeting.join(2, node_at("10.0.0.1"));
  ASSERT_EQ(meeting.said(), "begin>2 begin>1") << "in the order of node ranks";
  EXPECT_EQ(meeting.sent[0].message.membership->self.node_rank, 0);
  EXPECT_EQ(meeting.sent[1].message.membership->self.node_rank, 1);
  EXPECT_EQ(meeting.sent[0].message.membership->first_names,
            (std::vector<std::string>{"node-10.0.0.1", "node-10.0.0.2"}));
}

TEST(Coordinator, WaitsForTheLastCallWhenEnoughAreThere) {
  Meeting meeting(1, 3);
  meeting.join(1, node_at("10.0.0.1"));
  meeting.pass(900ms);
  meeting.join(2, node_at("10.0.0.2"));
  meeting.pass(900ms);
  EXPECT_EQ(meeting.said(), "") << "somebody came, so one more may come";
  EXPECT_EQ(meeting.coordinator.deadline(), meeting.now + 100ms);
  meeting.pass(100ms);
  EXPECT_EQ(meeting.said(), "begin>1 begin>2");
  EXPECT_FALSE(meeting.coordinator.deadline());
}

TEST(Coordinator, SaysWhoIsThereAndWhoIsMissing) {
  Meeting meeting(3, 3);
  EXPECT_EQ(meeting.coordinator.who_is_there(), "nobody has joined");
  meeting.join(1, node_at("10.0.0.1", 2, 0));
  meeting.join(2, node_at("10.0.0.3", 1, 2));
  meeting.pass(5s);
  ASSERT_EQ(meeting.said(), "waiting>1 waiting>2");
  EXPECT_EQ(meeting.sent[0].message.text,
            "joined: 'node-10.0.0.1' from 10.0.0.1 (2 workers, node rank 0), 'node-10.0.0.3' from 10.0.0.3 "
            "(1 worker, node rank 2); missing: 1 of 3 nodes (node rank 1)");
}

TEST(Coordinator, CountsWhoIsMissingToTheFewestThatTheJobCanHave) {
  Meeting meeting(3, 5);
  meeting.join(1, node_at("10.0.0.1", 1, 0));
  meeting.pass(5s);
  ASSERT_EQ(meeting.said(), "waiting>1");
  EXPECT_EQ(meeting.sent[0].message.text,
            "joined: 'node-10.0.0.1' from 10.0.0.1 (1 worker, node rank 0); missing: 2 of at least 3 nodes");
}

TEST(Coordinator, GivesUpAtTheJoinTimeout) {
  Meeting meeting;
  meeting.join(1, node_at("10.0.0.1"));
  meeting.pass(60s);
  ASSERT_EQ(meeting.said(), "refused>1");
  EXPECT_EQ(meeting.sent[0].message.text,
            "not enough nodes in 1m: joined: 'node-10.0.0.1' from 10.0.0.1 (1 worker); missing: 1 of 2 nodes");
  EXPECT_TRUE(meeting.sent[0].last);
  EXPECT_TRUE(meeting.coordinator.over());
}

TEST(Coordinator, RefusesWhoDoesNotFit) {
  const auto objection = [](auto change) {
    Meeting meeting;
    meeting.join(1, node_at("10.0.0.1", 1, 0));
    JoinRecord other = node_at("10.0.0.2");
    other.min_nodes = other.max_nodes = 2;
    change(other);
    meeting.coordinator.received(2, {.kind = Kind::kJoin, .join = other}, meeting.now);
    const std::string said = meeting.said();
    return said == "refused>2 waiting>1" ? meeting.sent[0].message.text : said;
  };
  EXPECT_EQ(objection([](JoinRecord& record) { record.run_name = "b"; }),
            "another job meets here: it is one without a name, as node 'node-10.0.0.1' says, and not 'b'");
  EXPECT_EQ(objection([](JoinRecord& record) { record.max_nodes = 3; }),
            "the job has 2 nodes, not 2:3, as 'node-10.0.0.1' says");
  EXPECT_EQ(objection([](JoinRecord& record) { record.settings = "strategy dp"; }),
            "the job has 'strategy ddp', as 'node-10.0.0.1' says; here it is 'strategy dp'");
  EXPECT_EQ(objection([](JoinRecord& record) { record.node_rank = 0; }),
            "node rank 0 is taken by 'node-10.0.0.1' from 10.0.0.1 (1 worker, node rank 0)");
}

TEST(Coordinator, SaysHowTwoJobsAreKeptApart) {
  Meeting meeting;
  meeting.join(1, node_at("10.0.0.1"));
  JoinRecord other = node_at("10.0.0.2");
  other.run_name = "b";
  meeting.coordinator.received(2, {.kind = Kind::kJoin, .join = other}, meeting.now);
  ASSERT_EQ(meeting.said(), "refused>2 waiting>1");
  EXPECT_EQ(meeting.sent[0].message.hint,
            "another port in '--rdzv-endpoint' keeps two jobs apart, the same '--rdzv-id' on all nodes makes them one");
}

TEST(Coordinator, TellsJobsWithoutANameApartByWhatTheyRun) {
  const auto record_of = [](const std::string& address, const std::string& program, const std::string& digest) {
    JoinRecord record = node_at(address);
    record.min_nodes = record.max_nodes = 2;
    record.program = program;
    record.command_digest = digest;
    return record;
  };
  const auto what_is_said_to = [&](const JoinRecord& second) {
    Meeting meeting;
    meeting.join(1, record_of("10.0.0.1", "train.py", "aa"));
    meeting.coordinator.received(2, {.kind = Kind::kJoin, .join = second}, meeting.now);
    const std::string said = meeting.said();
    return said == "refused>2 waiting>1" ? meeting.sent[0].message.text : said;
  };
  EXPECT_EQ(what_is_said_to(record_of("10.0.0.2", "train.py", "bb")),
            "another job meets here: node 'node-10.0.0.1' runs 'train.py' with other arguments than node "
            "'node-10.0.0.2'");
  EXPECT_EQ(what_is_said_to(record_of("10.0.0.2", "eval.py", "bb")),
            "another job meets here: node 'node-10.0.0.1' runs 'train.py' and node 'node-10.0.0.2' 'eval.py'");
  EXPECT_EQ(what_is_said_to(record_of("10.0.0.2", "train.py", "aa")), "begin>1 begin>2");
  EXPECT_EQ(what_is_said_to(record_of("10.0.0.2", "", "")), "begin>1 begin>2") << "nothing to compare";
  EXPECT_EQ(what_is_said_to(test::with_role(record_of("10.0.0.2", "server.py", "bb"), "server")), "begin>1 begin>2");
}

/// A second job is often another program under the name of the first.
TEST(Coordinator, RefusesAnotherProgramAlsoInAJobWithAName) {
  const auto record_of = [](const std::string& address, const std::string& program, const std::string& digest) {
    JoinRecord record = node_at(address);
    record.run_name = "mine";
    record.program = program;
    record.command_digest = digest;
    return record;
  };
  for (const int nodes_before : {1, 2}) {
    Meeting meeting(2, 2);
    for (int i = 1; i <= nodes_before; ++i) {
      meeting.join(static_cast<LauncherId>(i), record_of("10.0.0." + std::to_string(i), "train.py", "aa"));
    }
    (void)meeting.said();
    meeting.join(3, record_of("10.0.0.3", "eval.py", "bb"));
    ASSERT_EQ(meeting.said().substr(0, 9), "refused>3") << "before and after the start";
    EXPECT_EQ(meeting.sent[0].message.text,
              "another job of the name 'mine' meets here: node 'node-10.0.0.1' runs 'train.py' and node "
              "'node-10.0.0.3' 'eval.py'");
    EXPECT_NE(meeting.sent[0].message.hint.find("'--role'"), std::string::npos);
    meeting.join(4, record_of("10.0.0.4", "train.py", "cc"));
    EXPECT_EQ(meeting.said(), nodes_before == 1 ? "begin>1 begin>4" : "spare>4")
        << "a node may have arguments of its own";
    meeting.join(5, test::with_role(record_of("10.0.0.5", "server.py", "dd"), "server"));
    EXPECT_EQ(meeting.said(), "spare>5");
    meeting.join(6, record_of("10.0.0.6", "", ""));
    EXPECT_EQ(meeting.said(), "spare>6") << "torchrun's nodes run what they like";
  }
}

/// Else who is quicker would say what the job is, and the one that holds the meeting would not fit.
TEST(Coordinator, LetsItsOwnLauncherJoinFirst) {
  Meeting meeting;
  const JoinRecord host = node_at("10.0.0.1");
  JoinRecord other = node_at("10.0.0.2");
  other.settings = "strategy dp";
  meeting.led_by(host.token, false, {});
  meeting.join(1, other);
  meeting.join(2, node_at("10.0.0.3"));
  meeting.join(3, node_at("10.0.0.4"));
  EXPECT_EQ(meeting.said(), "");
  meeting.lose(2, "gone");
  meeting.join(4, host);
  EXPECT_EQ(meeting.said(), "refused>1 waiting>4 begin>4 begin>3");
}

TEST(Coordinator, EndsAtOnceWhenNobodyCanReplaceALostNode) {
  Meeting meeting;
  meeting.led_by("", false, {.replacement = Duration::zero()});
  meeting.join_two();
  meeting.lose(2, "silence");
  meeting.say(1, Kind::kReport);
  EXPECT_EQ(meeting.said(), "lost>1 over>1");
  meeting.ready(1, 1, 0);
  EXPECT_EQ(meeting.coordinator.deadline(), meeting.now);
  meeting.pass(Duration::zero());
  EXPECT_EQ(meeting.said(), "ended>1");
}

TEST(Coordinator, ForgetsWhoLeavesBeforeItBegan) {
  Meeting meeting;
  meeting.join(1, node_at("10.0.0.1"));
  meeting.lose(1, "gone");
  meeting.join(2, node_at("10.0.0.2"));
  EXPECT_EQ(meeting.said(), "");
  meeting.join(3, node_at("10.0.0.1"));
  EXPECT_EQ(meeting.said(), "begin>3 begin>2");
}

TEST(Coordinator, TakesALauncherThatConnectsAgainForTheSameOne) {
  Meeting meeting(2, 3);
  meeting.join(1, node_at("10.0.0.1"));
  meeting.join(2, node_at("10.0.0.2", 1, 1));
  meeting.join(3, node_at("10.0.0.2", 1, 1));  // nobody knows yet that its first connection is dead
  EXPECT_EQ(meeting.said(), "") << "refused, or counted as a third node";
  meeting.lose(2, "silence");
  meeting.pass(1s);
  EXPECT_EQ(meeting.said(), "begin>1 begin>3");
}

TEST(Coordinator, HearsWhoStopsWhileTheNextRoundBegins) {
  Meeting meeting;
  meeting.join_two();
  meeting.say(1, Kind::kReport);
  meeting.say(2, Kind::kReport);
  meeting.say(1, Kind::kReady, 1);
  meeting.say(2, Kind::kReady, 1);
  (void)meeting.said();
  meeting.say(2, Kind::kStopping, 0, "received SIGINT");
  ASSERT_EQ(meeting.said(), "stop>1");
  EXPECT_EQ(meeting.sent[0].message.text, "received SIGINT");
}

TEST(Coordinator, PassesTheFirstReasonToStopOnToTheOthers) {
  Meeting meeting;
  meeting.join_two();
  meeting.say(2, Kind::kStopping, 0, "rank 1 failed");
  ASSERT_EQ(meeting.said(), "stop>1");
  EXPECT_EQ(meeting.sent[0].message.text, "rank 1 failed");
  meeting.say(1, Kind::kStopping, 0, "rank 0 failed");
  EXPECT_EQ(meeting.said(), "") << "they stop already";
}

TEST(Coordinator, EndsARoundWhenAllHaveReported) {
  Meeting meeting;
  meeting.join_two();
  meeting.say(2, Kind::kReport, 0, "b");
  EXPECT_EQ(meeting.said(), "");
  meeting.say(1, Kind::kReport, 0, "a");
  ASSERT_EQ(meeting.said(), "over>1 over>2");
  EXPECT_EQ(meeting.sent[0].message.text, "b|a");
}

TEST(Coordinator, BeginsAgainWhenAllAreReady) {
  Meeting meeting;
  meeting.join_two();
  meeting.say(1, Kind::kReport);
  meeting.say(2, Kind::kReport);
  (void)meeting.said();
  meeting.ready(1, 1, 1);
  EXPECT_EQ(meeting.said(), "");
  meeting.ready(2, 1, 1);
  ASSERT_EQ(meeting.said(), "begin>1 begin>2");
  EXPECT_EQ(meeting.sent[1].message.membership->attempt, 1);
  EXPECT_EQ(meeting.sent[1].message.membership->round, 1);
}

TEST(Coordinator, CallsTheNextRoundOffWhenSomebodyStops) {
  Meeting meeting;
  meeting.join_two();
  meeting.say(1, Kind::kReport);
  meeting.say(2, Kind::kReport);
  meeting.say(1, Kind::kReady, 1);
  (void)meeting.said();
  meeting.say(2, Kind::kStopping, 0, "interrupted");
  EXPECT_EQ(meeting.said(), "stop>1");
  meeting.say(2, Kind::kLeave);
  meeting.say(1, Kind::kLeave);
  EXPECT_TRUE(meeting.coordinator.over());
}

TEST(Coordinator, TellsWhoIsReadyThatNoRoundCanFollow) {
  Meeting meeting(3, 3);
  for (LauncherId id = 1; id <= 3; ++id) meeting.join(id, node_at("10.0.0." + std::to_string(id)));
  for (LauncherId id = 1; id <= 3; ++id) meeting.say(id, Kind::kReport);
  meeting.say(1, Kind::kReady, 1);
  (void)meeting.said();
  meeting.say(2, Kind::kLeave);
  EXPECT_EQ(meeting.said(), "ended>1");
  meeting.say(3, Kind::kReady, 1);
  ASSERT_EQ(meeting.said(), "ended>3") << "also who comes later";
  EXPECT_EQ(meeting.sent[0].message.text, "node node-10.0.0.2 has left the job");
}

TEST(Coordinator, DoesNotMissWhoLeavesAfterItsReport) {
  Meeting meeting;
  meeting.join_two();
  meeting.say(1, Kind::kReport, 0, "a");
  meeting.say(1, Kind::kLeave);
  EXPECT_EQ(meeting.said(), "");
  meeting.say(2, Kind::kReport, 0, "b");
  ASSERT_EQ(meeting.said(), "over>2");
  EXPECT_EQ(meeting.sent[0].message.text, "a|b");
}

TEST(Coordinator, TellsTheOthersWhoIsLostAndWaitsForItNoLonger) {
  Meeting meeting;
  meeting.join_two();
  meeting.say(1, Kind::kReport, 0, "a");
  meeting.lose(2, "silence for 5s");
  ASSERT_EQ(meeting.said(), "lost>1 over>1");
  EXPECT_EQ(meeting.sent[0].message.node, "node-10.0.0.2");
  EXPECT_EQ(meeting.sent[0].message.text, "silence for 5s");
  EXPECT_EQ(meeting.sent[1].message.text, "a|");
}

TEST(Coordinator, LetsNobodyIntoAJobThatIsOver) {
  Meeting meeting(1, 2);
  meeting.join(1, node_at("10.0.0.1"));
  meeting.pass(1s);
  ASSERT_EQ(meeting.said(), "begin>1");
  meeting.say(1, Kind::kReport);
  ASSERT_EQ(meeting.said(), "over>1");
  meeting.say(1, Kind::kLeave);
  meeting.join(2, node_at("10.0.0.2"));
  ASSERT_EQ(meeting.said(), "refused>2");
  EXPECT_EQ(meeting.sent[0].message.text, "the job is over");
}

TEST(Coordinator, IsOverWhenAllHaveSaidBye) {
  Meeting meeting;
  meeting.join_two();
  meeting.say(1, Kind::kReport);
  meeting.say(2, Kind::kReport);
  meeting.say(1, Kind::kLeave);
  EXPECT_FALSE(meeting.coordinator.over());
  meeting.say(2, Kind::kLeave);
  EXPECT_TRUE(meeting.coordinator.over());
}

}  // namespace
}  // namespace lrun::launcher
