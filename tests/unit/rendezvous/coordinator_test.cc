#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator_harness.h"

namespace lrun::launcher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using namespace std::chrono_literals;
using Kind = LauncherMessage::Kind;
using test::node_at;
using Harness = test::CoordinatorHarness;

TEST(Coordinator, BeginsWhenAllAreThere) {
  Harness harness;
  harness.join(1, node_at("10.0.0.2"));
  EXPECT_EQ(harness.said(), "");
  harness.join(2, node_at("10.0.0.1"));
  ASSERT_EQ(harness.said(), "begin>2 begin>1") << "in the order of node ranks";
  EXPECT_EQ(harness.sent[0].message.membership->self.node_rank, 0);
  EXPECT_EQ(harness.sent[1].message.membership->self.node_rank, 1);
  EXPECT_EQ(harness.sent[0].message.membership->first_names,
            (std::vector<std::string>{"node-10.0.0.1", "node-10.0.0.2"}));
}

TEST(Coordinator, WaitsForTheLastCallWhenEnoughAreThere) {
  Harness harness(1, 3);
  harness.join(1, node_at("10.0.0.1"));
  harness.pass(900ms);
  harness.join(2, node_at("10.0.0.2"));
  harness.pass(900ms);
  EXPECT_EQ(harness.said(), "") << "somebody came, so one more may come";
  EXPECT_EQ(harness.coordinator.deadline(), harness.now + 100ms);
  harness.pass(100ms);
  EXPECT_EQ(harness.said(), "begin>1 begin>2");
  EXPECT_FALSE(harness.coordinator.deadline());
}

TEST(Coordinator, PassesAQuestionOnAndEachAnswerBack) {
  Harness harness;
  harness.join_two();
  harness.coordinator.received(1, {.kind = LauncherMessage::Kind::kAsk, .text = "1 stack"}, harness.now);
  ASSERT_EQ(harness.said(), "ask>2");
  EXPECT_EQ(harness.sent[0].message.text, "1 stack");
  LauncherMessage answer{
      .kind = LauncherMessage::Kind::kAnswer, .text = "well", .asker = harness.sent[0].message.asker};
  harness.coordinator.received(2, answer, harness.now);
  ASSERT_EQ(harness.said(), "answer>1");
  EXPECT_EQ(harness.sent[0].message.text, "well");
  answer.asker = 7;
  harness.coordinator.received(2, answer, harness.now);
  harness.say(9, LauncherMessage::Kind::kAsk);
  EXPECT_EQ(harness.said(), "") << "there is no such launcher";
}

TEST(Coordinator, SaysWhoIsThereAndWhoIsMissing) {
  Harness harness(3, 3);
  EXPECT_EQ(harness.coordinator.who_is_there(), "no node has joined");
  harness.join(1, node_at("10.0.0.1", 2, 0));
  harness.join(2, node_at("10.0.0.3", 1, 2));
  harness.pass(5s);
  ASSERT_EQ(harness.said(), "waiting>1 waiting>2");
  EXPECT_EQ(harness.sent[0].message.text,
            "joined: 'node-10.0.0.1' from 10.0.0.1 (2 workers, node rank 0), 'node-10.0.0.3' from 10.0.0.3 "
            "(1 worker, node rank 2); missing: 1 of 3 nodes (node rank 1)");
}

TEST(Coordinator, CountsWhoIsMissingToTheFewestThatTheJobCanHave) {
  Harness harness(3, 5);
  harness.join(1, node_at("10.0.0.1", 1, 0));
  harness.pass(5s);
  ASSERT_EQ(harness.said(), "waiting>1");
  EXPECT_EQ(harness.sent[0].message.text,
            "joined: 'node-10.0.0.1' from 10.0.0.1 (1 worker, node rank 0); missing: 2 of at least 3 nodes");
}

TEST(Coordinator, GivesUpAtTheJoinTimeout) {
  Harness harness;
  harness.join(1, node_at("10.0.0.1"));
  harness.pass(60s);
  ASSERT_EQ(harness.said(), "refused>1");
  EXPECT_EQ(harness.sent[0].message.text,
            "not enough nodes in 1m: joined: 'node-10.0.0.1' from 10.0.0.1 (1 worker); missing: 1 of 2 nodes");
  EXPECT_TRUE(harness.sent[0].last);
  EXPECT_TRUE(harness.coordinator.over());
}

TEST(Coordinator, RefusesWhoDoesNotFit) {
  const auto rejection = [](auto change) {
    Harness harness;
    harness.join(1, node_at("10.0.0.1", 1, 0));
    JoinRecord other = node_at("10.0.0.2");
    other.min_nodes = other.max_nodes = 2;
    change(other);
    harness.coordinator.received(2, {.kind = Kind::kJoin, .join = other}, harness.now);
    const std::string said = harness.said();
    return said == "refused>2 waiting>1" ? harness.sent[0].message.text : said;
  };
  EXPECT_EQ(rejection([](JoinRecord& record) { record.run_name = "b"; }),
            "another job uses this rendezvous: node 'node-10.0.0.1' has no '--rdzv-id', and node 'node-10.0.0.2' has "
            "'--rdzv-id b'");
  EXPECT_EQ(rejection([](JoinRecord& record) { record.max_nodes = 3; }),
            "node 'node-10.0.0.1' expects a job of 2 nodes, and node 'node-10.0.0.2' one of 2:3");
  EXPECT_EQ(rejection([](JoinRecord& record) { record.settings = "strategy dp"; }),
            "node 'node-10.0.0.1' has 'strategy ddp', and node 'node-10.0.0.2' has 'strategy dp'");
  EXPECT_EQ(rejection([](JoinRecord& record) { record.node_rank = 0; }),
            "node rank 0 is taken by 'node-10.0.0.1' from 10.0.0.1 (1 worker, node rank 0)");
}

TEST(Coordinator, SaysHowTwoJobsAreKeptApart) {
  Harness harness;
  harness.join(1, node_at("10.0.0.1"));
  JoinRecord other = node_at("10.0.0.2");
  other.run_name = "b";
  harness.coordinator.received(2, {.kind = Kind::kJoin, .join = other}, harness.now);
  ASSERT_EQ(harness.said(), "refused>2 waiting>1");
  EXPECT_THAT(harness.sent[0].message.hint, AllOf(HasSubstr("'--rdzv-endpoint'"), HasSubstr("'--rdzv-id'")));
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
    Harness harness;
    harness.join(1, record_of("10.0.0.1", "train.py", "aa"));
    harness.coordinator.received(2, {.kind = Kind::kJoin, .join = second}, harness.now);
    const std::string said = harness.said();
    return said == "refused>2 waiting>1" ? harness.sent[0].message.text : said;
  };
  EXPECT_EQ(what_is_said_to(record_of("10.0.0.2", "train.py", "bb")),
            "another job uses this rendezvous: node 'node-10.0.0.1' runs 'train.py' with other arguments than node "
            "'node-10.0.0.2'");
  EXPECT_EQ(
      what_is_said_to(record_of("10.0.0.2", "eval.py", "bb")),
      "another job uses this rendezvous: node 'node-10.0.0.1' runs 'train.py' and node 'node-10.0.0.2' 'eval.py'");
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
    Harness harness(2, 2);
    for (int i = 1; i <= nodes_before; ++i) {
      harness.join(static_cast<ConnectionId>(i), record_of("10.0.0." + std::to_string(i), "train.py", "aa"));
    }
    (void)harness.said();
    harness.join(3, record_of("10.0.0.3", "eval.py", "bb"));
    ASSERT_EQ(harness.said().substr(0, 9), "refused>3") << "before and after the start";
    EXPECT_EQ(harness.sent[0].message.text,
              "another job named 'mine' uses this rendezvous: node 'node-10.0.0.1' runs 'train.py' and node "
              "'node-10.0.0.3' 'eval.py'");
    EXPECT_NE(harness.sent[0].message.hint.find("'--role'"), std::string::npos);
    harness.join(4, record_of("10.0.0.4", "train.py", "cc"));
    EXPECT_EQ(harness.said(), nodes_before == 1 ? "begin>1 begin>4" : "spare>4")
        << "a node may have arguments of its own";
    harness.join(5, test::with_role(record_of("10.0.0.5", "server.py", "dd"), "server"));
    EXPECT_EQ(harness.said(), "spare>5");
    harness.join(6, record_of("10.0.0.6", "", ""));
    EXPECT_EQ(harness.said(), "spare>6") << "torchrun's nodes run what they like";
  }
}

/// Else the quickest launcher would define the job, and the leader's own launcher would not fit.
TEST(Coordinator, LetsItsOwnLauncherJoinFirst) {
  Harness harness;
  const JoinRecord host = node_at("10.0.0.1");
  JoinRecord other = node_at("10.0.0.2");
  other.settings = "strategy dp";
  harness.led_by(host.token, false, {});
  harness.join(1, other);
  harness.join(2, node_at("10.0.0.3"));
  harness.join(3, node_at("10.0.0.4"));
  EXPECT_EQ(harness.said(), "");
  harness.lose(2, "gone");
  harness.join(4, host);
  EXPECT_EQ(harness.said(), "refused>1 waiting>4 begin>4 begin>3");
}

TEST(Coordinator, EndsAtOnceWhenNobodyCanReplaceALostNode) {
  Harness harness;
  harness.led_by("", false, {.replacement = Duration::zero()});
  harness.join_two();
  harness.lose(2, "silence");
  harness.say(1, Kind::kReport);
  EXPECT_EQ(harness.said(), "lost>1 over>1");
  harness.ready(1, 1, 0);
  EXPECT_EQ(harness.coordinator.deadline(), harness.now);
  harness.pass(Duration::zero());
  EXPECT_EQ(harness.said(), "ended>1");
}

TEST(Coordinator, ForgetsWhoLeavesBeforeItBegan) {
  Harness harness;
  harness.join(1, node_at("10.0.0.1"));
  harness.lose(1, "gone");
  harness.join(2, node_at("10.0.0.2"));
  EXPECT_EQ(harness.said(), "");
  harness.join(3, node_at("10.0.0.1"));
  EXPECT_EQ(harness.said(), "begin>3 begin>2");
}

TEST(Coordinator, TakesALauncherThatConnectsAgainForTheSameOne) {
  Harness harness(2, 3);
  harness.join(1, node_at("10.0.0.1"));
  harness.join(2, node_at("10.0.0.2", 1, 1));
  harness.join(3, node_at("10.0.0.2", 1, 1));  // nobody knows yet that its first connection is dead
  EXPECT_EQ(harness.said(), "") << "refused, or counted as a third node";
  harness.lose(2, "silence");
  harness.pass(1s);
  EXPECT_EQ(harness.said(), "begin>1 begin>3");
}

TEST(Coordinator, HearsWhoStopsWhileTheNextRoundBegins) {
  Harness harness;
  harness.join_two();
  harness.say(1, Kind::kReport);
  harness.say(2, Kind::kReport);
  harness.say(1, Kind::kReady, 1);
  harness.say(2, Kind::kReady, 1);
  (void)harness.said();
  harness.say(2, Kind::kStopping, 0, "received SIGINT");
  ASSERT_EQ(harness.said(), "stop>1");
  EXPECT_EQ(harness.sent[0].message.text, "received SIGINT");
}

TEST(Coordinator, PassesTheFirstReasonToStopOnToTheOthers) {
  Harness harness;
  harness.join_two();
  harness.say(2, Kind::kStopping, 0, "rank 1 failed");
  ASSERT_EQ(harness.said(), "stop>1");
  EXPECT_EQ(harness.sent[0].message.text, "rank 1 failed");
  harness.say(1, Kind::kStopping, 0, "rank 0 failed");
  EXPECT_EQ(harness.said(), "") << "they stop already";
}

TEST(Coordinator, EndsARoundWhenAllHaveReported) {
  Harness harness;
  harness.join_two();
  harness.say(2, Kind::kReport, 0, "b");
  EXPECT_EQ(harness.said(), "");
  harness.say(1, Kind::kReport, 0, "a");
  ASSERT_EQ(harness.said(), "over>1 over>2");
  EXPECT_EQ(harness.sent[0].message.text, "b|a");
}

TEST(Coordinator, BeginsAgainWhenAllAreReady) {
  Harness harness;
  harness.join_two();
  harness.say(1, Kind::kReport);
  harness.say(2, Kind::kReport);
  (void)harness.said();
  harness.ready(1, 1, 1);
  EXPECT_EQ(harness.said(), "");
  harness.ready(2, 1, 1);
  ASSERT_EQ(harness.said(), "begin>1 begin>2");
  EXPECT_EQ(harness.sent[1].message.membership->attempt, 1);
  EXPECT_EQ(harness.sent[1].message.membership->round, 1);
}

TEST(Coordinator, CallsTheNextRoundOffWhenSomebodyStops) {
  Harness harness;
  harness.join_two();
  harness.say(1, Kind::kReport);
  harness.say(2, Kind::kReport);
  harness.say(1, Kind::kReady, 1);
  (void)harness.said();
  harness.say(2, Kind::kStopping, 0, "interrupted");
  EXPECT_EQ(harness.said(), "stop>1");
  harness.say(2, Kind::kLeave);
  harness.say(1, Kind::kLeave);
  EXPECT_TRUE(harness.coordinator.over());
}

TEST(Coordinator, TellsWhoIsReadyThatNoRoundCanFollow) {
  Harness harness(3, 3);
  for (ConnectionId id = 1; id <= 3; ++id) harness.join(id, node_at("10.0.0." + std::to_string(id)));
  for (ConnectionId id = 1; id <= 3; ++id) harness.say(id, Kind::kReport);
  harness.say(1, Kind::kReady, 1);
  (void)harness.said();
  harness.say(2, Kind::kLeave);
  EXPECT_EQ(harness.said(), "ended>1");
  harness.say(3, Kind::kReady, 1);
  ASSERT_EQ(harness.said(), "ended>3") << "also who comes later";
  EXPECT_EQ(harness.sent[0].message.text, "node node-10.0.0.2 has left the job");
}

TEST(Coordinator, DoesNotMissWhoLeavesAfterItsReport) {
  Harness harness;
  harness.join_two();
  harness.say(1, Kind::kReport, 0, "a");
  harness.say(1, Kind::kLeave);
  EXPECT_EQ(harness.said(), "");
  harness.say(2, Kind::kReport, 0, "b");
  ASSERT_EQ(harness.said(), "over>2");
  EXPECT_EQ(harness.sent[0].message.text, "a|b");
}

TEST(Coordinator, TellsTheOthersWhoIsLostAndWaitsForItNoLonger) {
  Harness harness;
  harness.join_two();
  harness.say(1, Kind::kReport, 0, "a");
  harness.lose(2, "silence for 5s");
  ASSERT_EQ(harness.said(), "lost>1 over>1");
  EXPECT_EQ(harness.sent[0].message.node, "node-10.0.0.2");
  EXPECT_EQ(harness.sent[0].message.text, "silence for 5s");
  EXPECT_EQ(harness.sent[1].message.text, "a|");
}

TEST(Coordinator, LetsNobodyIntoAJobThatIsOver) {
  Harness harness(1, 2);
  harness.join(1, node_at("10.0.0.1"));
  harness.pass(1s);
  ASSERT_EQ(harness.said(), "begin>1");
  harness.say(1, Kind::kReport);
  ASSERT_EQ(harness.said(), "over>1");
  harness.say(1, Kind::kLeave);
  harness.join(2, node_at("10.0.0.2"));
  ASSERT_EQ(harness.said(), "refused>2");
  EXPECT_EQ(harness.sent[0].message.text, "the job is over");
}

TEST(Coordinator, IsOverWhenAllHaveLeft) {
  Harness harness;
  harness.join_two();
  harness.say(1, Kind::kReport);
  harness.say(2, Kind::kReport);
  harness.say(1, Kind::kLeave);
  EXPECT_FALSE(harness.coordinator.over());
  harness.say(2, Kind::kLeave);
  EXPECT_TRUE(harness.coordinator.over());
}

}  // namespace
}  // namespace lrun::launcher
