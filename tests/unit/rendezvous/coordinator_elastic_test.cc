// Rounds of a job whose nodes come and go.
#include <gtest/gtest.h>

#include "coordinator_harness.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;
using Kind = LauncherMessage::Kind;
using test::node_at;
using Harness = test::CoordinatorHarness;

/// Three nodes of a job of 2:4 that has begun.
Harness three_of_four() {
  Harness harness(2, 4);
  for (ConnectionId id = 1; id <= 3; ++id) harness.join(id, node_at("10.0.0." + std::to_string(id)));
  harness.pass(1s);
  EXPECT_EQ(harness.said(), "begin>1 begin>2 begin>3");
  return harness;
}

TEST(ElasticCoordinator, GoesOnWithoutANodeThatIsLost) {
  Harness harness = three_of_four();
  harness.lose(2, "silence for 5s");
  ASSERT_EQ(harness.said(), "lost>1 lost>3");
  EXPECT_EQ(harness.sent[0].message.steady_ns, std::chrono::nanoseconds(harness.now.time_since_epoch() - 1s).count());
  harness.say(1, Kind::kReport, 0, "a");
  harness.say(3, Kind::kReport, 0, "c");
  ASSERT_EQ(harness.said(), "over>1 over>3");
  EXPECT_EQ(harness.sent[0].message.text, "a|c|");
  harness.ready(1, 1, 0);
  harness.ready(3, 1, 0);
  ASSERT_EQ(harness.said(), "begin>1 begin>3");
  const Membership& membership = *harness.sent[1].message.membership;
  EXPECT_EQ(membership.num_nodes, 2);
  EXPECT_EQ(membership.self.node_rank, 1);
  EXPECT_EQ(membership.round, 1);
  EXPECT_EQ(membership.attempt, 0) << "a change of nodes costs no restart";
}

TEST(ElasticCoordinator, PassesOnWhatTheOthersSayAboutTheAttempts) {
  Harness harness = three_of_four();
  for (ConnectionId id = 1; id <= 3; ++id) harness.say(id, Kind::kReport);
  (void)harness.said();
  for (ConnectionId id = 1; id <= 3; ++id) {
    const int port = 5000 + static_cast<int>(id);
    harness.coordinator.received(
        id, {.kind = Kind::kReady, .round = 1, .text = "one restart", .attempt = 1, .port = port}, harness.now);
  }
  ASSERT_EQ(harness.said(), "begin>1 begin>2 begin>3");
  EXPECT_EQ(harness.sent[0].message.membership->attempt, 1);
  EXPECT_EQ(harness.sent[0].message.membership->history, "one restart");
  EXPECT_EQ(harness.sent[0].message.membership->master_port, 5001) << "the store of the last round was on another";
}

TEST(ElasticCoordinator, TakesInWhoComesLater) {
  Harness harness = three_of_four();
  harness.pass(60s);
  harness.join(4, node_at("10.0.0.4"));
  ASSERT_EQ(harness.said(), "spare>4 resize>1 resize>2 resize>3") << "the job is full: nobody else is waited for";
  EXPECT_EQ(harness.sent[1].message.text, "node node-10.0.0.4 has joined: all start again on 4 of 2:4 nodes");
  for (ConnectionId id = 1; id <= 3; ++id) harness.say(id, Kind::kReport);
  for (ConnectionId id = 1; id <= 3; ++id) harness.ready(id, 1, 0);
  EXPECT_EQ(harness.said(), "over>1 over>2 over>3 begin>1 begin>2 begin>3 begin>4");
}

TEST(ElasticCoordinator, WaitsAMomentForAnotherNewcomer) {
  Harness harness(1, 4);
  harness.join(1, node_at("10.0.0.1"));
  harness.pass(1s);
  harness.join(2, node_at("10.0.0.2"));
  harness.pass(900ms);
  harness.join(3, node_at("10.0.0.3"));
  EXPECT_EQ(harness.said(), "begin>1 spare>2 spare>3");
  EXPECT_EQ(harness.coordinator.deadline(), harness.now + 1s);
  harness.pass(1s);
  ASSERT_EQ(harness.said(), "resize>1");
  EXPECT_EQ(harness.sent[0].message.text,
            "nodes node-10.0.0.2, node-10.0.0.3 have joined: all start again on 3 of 1:4 nodes");
}

TEST(ElasticCoordinator, LeavesAJobAloneOfWhichAPartIsDone) {
  Harness harness = three_of_four();
  harness.say(1, Kind::kReport, 0, "succeeded");
  harness.join(4, node_at("10.0.0.4"));
  harness.pass(60s);
  EXPECT_EQ(harness.said(), "spare>4") << "to start again would undo what is done";
}

TEST(ElasticCoordinator, KeepsASpareUntilANodeIsLost) {
  Harness harness;
  harness.join_two();
  harness.join(3, node_at("10.0.0.3"));
  harness.pass(60s);
  ASSERT_EQ(harness.said(), "spare>3");
  EXPECT_EQ(harness.sent[0].message.text, "the job runs with 2 of 2 nodes: this node waits until it is needed");
  harness.lose(2, "silence for 5s");
  harness.say(1, Kind::kReport);
  harness.ready(1, 1, 0);
  ASSERT_EQ(harness.said(), "lost>1 over>1 begin>1 begin>3");
  EXPECT_EQ(harness.sent[3].message.membership->first_names[1], "node-10.0.0.3");
}

TEST(ElasticCoordinator, LetsASpareWaitWhoseRankIsTaken) {
  Harness harness(2, 3);
  harness.join(1, node_at("10.0.0.1", 1, 0));
  harness.join(2, node_at("10.0.0.2", 1, 1));
  harness.pass(1s);
  JoinRecord again = node_at("10.0.0.2", 1, 1);
  again.token = "started again";
  harness.join(3, again);
  harness.pass(9s);
  EXPECT_EQ(harness.said(), "begin>1 begin>2 spare>3") << "it is not known yet that its last launcher is dead";
  harness.lose(2, "silence for 5s");
  harness.say(1, Kind::kReport);
  harness.ready(1, 1, 0);
  EXPECT_EQ(harness.said(), "lost>1 over>1 begin>1 begin>3");
}

TEST(ElasticCoordinator, TellsSparesHowTheJobEnds) {
  for (const std::string end : {"", "rank 1 exited with code 7"}) {
    Harness harness;
    harness.join_two();
    harness.join(3, node_at("10.0.0.3"));
    harness.say(1, Kind::kReport);
    harness.say(2, Kind::kReport);
    (void)harness.said();
    harness.say(1, Kind::kLeave, 0, end);
    ASSERT_EQ(harness.said(), "ended>3");
    EXPECT_EQ(harness.sent[0].message.text, end);
    EXPECT_TRUE(harness.sent[0].last);
    harness.say(2, Kind::kLeave, 0, end);
    EXPECT_TRUE(harness.coordinator.over());
  }
}

TEST(ElasticCoordinator, GoesOnWhenANodeLeavesByItself) {
  Harness harness = three_of_four();
  harness.say(3, Kind::kDropOut, 0, "its lrun received SIGTERM and left the job");
  ASSERT_EQ(harness.said(), "lost>1 lost>2");
  EXPECT_EQ(harness.sent[0].message.text, "its lrun received SIGTERM and left the job");
  for (ConnectionId id = 1; id <= 2; ++id) harness.say(id, Kind::kReport);
  for (ConnectionId id = 1; id <= 2; ++id) harness.ready(id, 1, 0);
  EXPECT_EQ(harness.said(), "over>1 over>2 begin>1 begin>2");
}

TEST(ElasticCoordinator, WaitsForOthersWhenTooFewAreLeft) {
  Harness harness;
  harness.join_two();
  harness.lose(2, "silence for 5s");
  harness.say(1, Kind::kReport);
  harness.ready(1, 1, 0);
  EXPECT_EQ(harness.said(), "lost>1 over>1");
  harness.pass(5s);
  ASSERT_EQ(harness.said(), "waiting>1");
  EXPECT_EQ(harness.sent[0].message.text, "joined: 'node-10.0.0.1' from 10.0.0.1 (1 worker); missing: 1 of 2 nodes");
  harness.join(3, node_at("10.0.0.2"));
  EXPECT_EQ(harness.said(), "spare>3 begin>1 begin>3");
}

TEST(ElasticCoordinator, EndsWhenNobodyTakesThePlaceOfALostNode) {
  Harness harness;
  harness.join_two();
  harness.lose(2, "silence for 5s");
  harness.say(1, Kind::kReport);
  harness.ready(1, 1, 0);
  (void)harness.said();
  harness.pass(60s);
  ASSERT_EQ(harness.said(), "ended>1");
  EXPECT_EQ(harness.sent[0].message.text,
            "not enough nodes in 1m: joined: 'node-10.0.0.1' from 10.0.0.1 (1 worker); missing: 1 of 2 nodes");
  EXPECT_TRUE(harness.coordinator.over());
}

TEST(ElasticCoordinator, GoesOnWhenANodeIsLostBetweenTwoRounds) {
  Harness harness = three_of_four();
  for (ConnectionId id = 1; id <= 3; ++id) harness.say(id, Kind::kReport);
  harness.ready(1, 1, 1);
  harness.ready(3, 1, 1);
  (void)harness.said();
  harness.lose(2, "its launcher ended");
  EXPECT_EQ(harness.said(), "lost>1 lost>3 begin>1 begin>3") << "nobody else is waited for";
}

TEST(ElasticCoordinator, DoesNotMissWhoIsLostAfterItsReport) {
  Harness harness = three_of_four();
  harness.say(3, Kind::kReport, 0, "c");
  harness.lose(3, "its launcher ended");
  EXPECT_EQ(harness.said(), "") << "its workers were done";
  harness.say(1, Kind::kReport, 0, "a");
  harness.say(2, Kind::kReport, 0, "b");
  ASSERT_EQ(harness.said(), "over>1 over>2");
  EXPECT_EQ(harness.sent[0].message.text, "c|a|b");
}

TEST(ElasticCoordinator, BeginsWithSparesAloneWhenAllNodesAreLost) {
  Harness harness(1, 1);
  harness.join(1, node_at("10.0.0.1"));
  harness.join(2, node_at("10.0.0.2"));
  harness.lose(1, "silence for 5s");
  EXPECT_EQ(harness.said(), "begin>1 spare>2 begin>2");
}

TEST(ElasticCoordinator, TakesAMemberThatConnectsAgainForANewcomer) {
  Harness harness(1, 2);
  harness.join(1, node_at("10.0.0.1"));
  harness.join(2, node_at("10.0.0.2"));
  harness.join(3, node_at("10.0.0.2"));  // kBegin did not reach it, and nobody knows yet that its connection is dead
  EXPECT_EQ(harness.said(), "begin>1 begin>2 lost>1 spare>3");
  harness.say(1, Kind::kReport);
  harness.ready(1, 1, 0);
  EXPECT_EQ(harness.said(), "over>1 begin>1 begin>3");
}

TEST(ElasticCoordinator, NamesAFewOfManyNewcomers) {
  Harness harness(1, 40);
  harness.join(1, node_at("10.0.0.1"));
  harness.pass(1s);
  for (ConnectionId id = 2; id <= 20; ++id) harness.join(id, node_at("10.0.0." + std::to_string(id)));
  (void)harness.said();
  harness.pass(1s);
  ASSERT_EQ(harness.said(), "resize>1");
  const std::string& text = harness.sent[0].message.text;
  EXPECT_NE(text.find("node-10.0.0.17 and 3 more have joined: all start again on 20 of 1:40 nodes"), text.npos) << text;
  EXPECT_EQ(text.find("node-10.0.0.18"), text.npos) << text;
  EXPECT_EQ(harness.sent[0].message.node.find("node-10.0.0.18"), text.npos);
}

TEST(ElasticCoordinator, DoesNotBeginAgainWithSparesWhatWasToldToStop) {
  Harness harness(1, 2);
  harness.join_two();
  harness.join(3, node_at("10.0.0.3"));
  harness.say(1, Kind::kStopping, 0, "received SIGINT");
  (void)harness.said();
  harness.lose(1, "its launcher ended");
  harness.lose(2, "its launcher ended");
  ASSERT_EQ(harness.said(), "lost>2 ended>3");
  EXPECT_EQ(harness.sent[1].message.text, "all of its nodes are lost");
  EXPECT_TRUE(harness.coordinator.over());
}

TEST(ElasticCoordinator, DoesNotBeginAgainWithSparesWhatMayBeDone) {
  Harness harness(1, 2);
  harness.join_two();
  harness.join(3, node_at("10.0.0.3"));
  for (ConnectionId id = 1; id <= 2; ++id) harness.say(id, Kind::kReport, 0, "nobody here can read it");
  (void)harness.said();
  harness.lose(1, "its launcher ended");
  harness.lose(2, "its launcher ended");
  EXPECT_EQ(harness.said(), "lost>2 ended>3");
}

TEST(ElasticCoordinator, BeginsAgainWithSparesWhatWasToGoOn) {
  Harness harness(1, 2);
  harness.join_two();
  harness.join(3, node_at("10.0.0.3"));
  for (ConnectionId id = 1; id <= 2; ++id) harness.say(id, Kind::kReport);
  harness.ready(1, 1, 1);
  (void)harness.said();
  harness.lose(1, "its launcher ended");
  harness.lose(2, "its launcher ended");
  harness.pass(1s);
  ASSERT_EQ(harness.said(), "lost>2 begin>3");
  EXPECT_EQ(harness.sent[1].message.membership->attempt, 1);
}

TEST(ElasticCoordinator, GoesOnWithoutANodeThatLeavesBetweenTwoRounds) {
  Harness harness = three_of_four();
  harness.lose(3, "silence for 5s");
  for (ConnectionId id = 1; id <= 2; ++id) harness.say(id, Kind::kReport);
  harness.join(4, node_at("10.0.0.4"));
  (void)harness.said();
  harness.say(2, Kind::kDropOut, 0, "a worker of it cannot be ended");
  harness.ready(1, 1, 0);
  harness.pass(1s);
  ASSERT_EQ(harness.said(), "lost>1 begin>1 begin>4");
  EXPECT_EQ(harness.sent[0].message.text, "a worker of it cannot be ended");
}

/// Twice in each last call a node comes and goes, until something else happens than that it is told to wait.
/// \return what, and after how many seconds of its doing: 'resize>1 after 9'.
std::string said_despite_restless_node(Harness& harness) {
  for (ConnectionId id = 100; id < 200; ++id) {
    harness.join(id, node_at("10.0.1.1"));
    harness.lose(id, "its launcher ended");
    harness.pass(500ms);
    std::string said = harness.said();
    const std::string waits = "spare>" + std::to_string(id);
    if (said.starts_with(waits)) said.erase(0, std::min(said.size(), waits.size() + 1));
    if (!said.empty() && !said.starts_with("waiting")) return said + " after " + std::to_string((id - 99) / 2);
  }
  return "nothing";
}

TEST(ElasticCoordinator, BeginsThoughANodeComesAndGoes) {
  Harness harness(2, 4);
  harness.join(1, node_at("10.0.0.1"));
  harness.join(2, node_at("10.0.0.2"));
  EXPECT_EQ(said_despite_restless_node(harness), "begin>1 begin>2 after 10");
}

TEST(ElasticCoordinator, TakesInANodeThoughAnotherComesAndGoes) {
  Harness harness(1, 4);
  harness.join(1, node_at("10.0.0.1"));
  harness.pass(60s);
  harness.join(2, node_at("10.0.0.2"));
  EXPECT_EQ(harness.said(), "begin>1 spare>2");
  EXPECT_EQ(said_despite_restless_node(harness), "resize>1 after 10");
}

TEST(ElasticCoordinator, BeginsAgainThoughANodeComesAndGoes) {
  Harness harness = three_of_four();
  harness.lose(3, "silence for 5s");
  for (ConnectionId id = 1; id <= 2; ++id) harness.say(id, Kind::kReport);
  harness.join(4, node_at("10.0.1.1"));
  harness.lose(4, "its launcher ended");
  for (ConnectionId id = 1; id <= 2; ++id) harness.ready(id, 1, 0);
  (void)harness.said();
  EXPECT_EQ(said_despite_restless_node(harness), "begin>1 begin>2 after 10");
}

TEST(ElasticCoordinator, WaitsAWholeLastCallForWhoComesAfterOneThatLeft) {
  Harness harness(1, 4);
  harness.join(1, node_at("10.0.0.1"));
  harness.pass(1s);
  harness.join(2, node_at("10.0.0.2"));
  harness.lose(2, "its launcher ended");
  harness.pass(60s);
  harness.join(3, node_at("10.0.0.3"));
  (void)harness.said();
  harness.pass(900ms);
  EXPECT_EQ(harness.said(), "");
  harness.pass(100ms);
  EXPECT_EQ(harness.said(), "resize>1");
}

/// A job of one node and one that comes and goes.
class ComingAndGoing : public ::testing::Test {
 protected:
  void SetUp() override {
    harness_.join(1, node_at("10.0.0.1"));
    harness_.pass(1s);
    (void)harness_.said();
  }
  void come_and_go(JoinRecord node) {
    const int round = 2 * times_++;
    harness_.join(++last_, std::move(node));
    harness_.say(1, Kind::kReport, round);
    harness_.ready(1, round + 1, 0);
    (void)harness_.said();
    harness_.lose(last_, "silence for 5s");
    harness_.say(1, Kind::kReport, round + 1);
    harness_.ready(1, round + 2, 0);
    harness_.pass(1s);
  }

  Harness harness_{1, 2};
  ConnectionId last_ = 1;
  int times_ = 0;
};

TEST_F(ComingAndGoing, EndsForANodeThatDoesItAgainAndAgain) {
  for (int i = 0; i < 5; ++i) {
    come_and_go(node_at("10.0.0.2"));
    ASSERT_EQ(harness_.said(), "lost>1 over>1 begin>1") << i;
    const std::string& text = harness_.sent[0].message.text;
    EXPECT_EQ(text == "silence for 5s", i < 4) << text;
  }
  EXPECT_EQ(harness_.sent[0].message.text,
            "silence for 5s; it has left the job 5 times within 10m and may not rejoin for a while");
  harness_.join(++last_, node_at("10.0.0.2"));
  ASSERT_EQ(harness_.said(), "refused>7");
  EXPECT_EQ(harness_.sent[0].message.text,
            "node node-10.0.0.2 has left the job 5 times within 10m: it may rejoin in 595s");
  harness_.join(++last_, node_at("10.0.0.3"));
  EXPECT_EQ(harness_.said(), "spare>8 resize>1") << "other nodes may come";
}

TEST_F(ComingAndGoing, IsForgivenAfterAWhile) {
  for (int i = 0; i < 5; ++i) come_and_go(node_at("10.0.0.2"));
  harness_.pass(10min);
  (void)harness_.said();
  harness_.join(++last_, node_at("10.0.0.2"));
  EXPECT_EQ(harness_.said(), "spare>7 resize>1");
}

TEST_F(ComingAndGoing, IsNoMatterWhereItIsRare) {
  for (int i = 0; i < 10; ++i) {
    come_and_go(node_at("10.0.0.2"));
    ASSERT_EQ(harness_.said(), "lost>1 over>1 begin>1") << i;
    harness_.pass(3min);
  }
}

}  // namespace
}  // namespace lrun::launcher
