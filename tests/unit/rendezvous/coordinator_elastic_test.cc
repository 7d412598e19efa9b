// Rounds of a job whose nodes come and go.
#include <gtest/gtest.h>

#include "coordinator_harness.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;
using Kind = LauncherMessage::Kind;
using test::node_at;
using Meeting = test::CoordinatorHarness;

/// Three nodes of a job of 2:4 that has begun.
Meeting three_of_four() {
  Meeting meeting(2, 4);
  for (LauncherId id = 1; id <= 3; ++id) meeting.join(id, node_at("10.0.0." + std::to_string(id)));
  meeting.pass(1s);
  EXPECT_EQ(meeting.said(), "begin>1 begin>2 begin>3");
  return meeting;
}

TEST(ElasticCoordinator, GoesOnWithoutANodeThatIsLost) {
  Meeting meeting = three_of_four();
  meeting.lose(2, "silence for 5s");
  ASSERT_EQ(meeting.said(), "lost>1 lost>3");
  EXPECT_EQ(meeting.sent[0].message.steady_ns, std::chrono::nanoseconds(meeting.now.time_since_epoch() - 1s).count());
  meeting.say(1, Kind::kReport, 0, "a");
  meeting.say(3, Kind::kReport, 0, "c");
  ASSERT_EQ(meeting.said(), "over>1 over>3");
  EXPECT_EQ(meeting.sent[0].message.text, "a|c|");
  meeting.ready(1, 1, 0);
  meeting.ready(3, 1, 0);
  ASSERT_EQ(meeting.said(), "begin>1 begin>3");
  const Membership& membership = *meeting.sent[1].message.membership;
  EXPECT_EQ(membership.num_nodes, 2);
  EXPECT_EQ(membership.self.node_rank, 1);
  EXPECT_EQ(membership.round, 1);
  EXPECT_EQ(membership.attempt, 0) << "a change of nodes costs no restart";
}

TEST(ElasticCoordinator, PassesOnWhatTheOthersSayAboutTheAttempts) {
  Meeting meeting = three_of_four();
  for (LauncherId id = 1; id <= 3; ++id) meeting.say(id, Kind::kReport);
  (void)meeting.said();
  for (LauncherId id = 1; id <= 3; ++id) {
    const int port = 5000 + static_cast<int>(id);
    meeting.coordinator.received(
        id, {.kind = Kind::kReady, .round = 1, .text = "one restart", .attempt = 1, .port = port}, meeting.now);
  }
  ASSERT_EQ(meeting.said(), "begin>1 begin>2 begin>3");
  EXPECT_EQ(meeting.sent[0].message.membership->attempt, 1);
  EXPECT_EQ(meeting.sent[0].message.membership->history, "one restart");
  EXPECT_EQ(meeting.sent[0].message.membership->master_port, 5001) << "the store of the last round was on another";
}

TEST(ElasticCoordinator, TakesInWhoComesLater) {
  Meeting meeting = three_of_four();
  meeting.pass(60s);
  meeting.join(4, node_at("10.0.0.4"));
  ASSERT_EQ(meeting.said(), "spare>4 resize>1 resize>2 resize>3") << "the job is full: nobody else is waited for";
  EXPECT_EQ(meeting.sent[1].message.text, "node node-10.0.0.4 has joined: all start again on 4 of 2:4 nodes");
  for (LauncherId id = 1; id <= 3; ++id) meeting.say(id, Kind::kReport);
  for (LauncherId id = 1; id <= 3; ++id) meeting.ready(id, 1, 0);
  EXPECT_EQ(meeting.said(), "over>1 over>2 over>3 begin>1 begin>2 begin>3 begin>4");
}

TEST(ElasticCoordinator, WaitsAMomentForAnotherNewcomer) {
  Meeting meeting(1, 4);
  meeting.join(1, node_at("10.0.0.1"));
  meeting.pass(1s);
  meeting.join(2, node_at("10.0.0.2"));
  meeting.pass(900ms);
  meeting.join(3, node_at("10.0.0.3"));
  EXPECT_EQ(meeting.said(), "begin>1 spare>2 spare>3");
  EXPECT_EQ(meeting.coordinator.deadline(), meeting.now + 1s);
  meeting.pass(1s);
  ASSERT_EQ(meeting.said(), "resize>1");
  EXPECT_EQ(meeting.sent[0].message.text,
            "nodes node-10.0.0.2, node-10.0.0.3 have joined: all start again on 3 of 1:4 nodes");
}

TEST(ElasticCoordinator, LeavesAJobAloneOfWhichAPartIsDone) {
  Meeting meeting = three_of_four();
  meeting.say(1, Kind::kReport, 0, "succeeded");
  meeting.join(4, node_at("10.0.0.4"));
  meeting.pass(60s);
  EXPECT_EQ(meeting.said(), "spare>4") << "to start again would undo what is done";
}

TEST(ElasticCoordinator, KeepsASpareUntilANodeIsLost) {
  Meeting meeting;
  meeting.join_two();
  meeting.join(3, node_at("10.0.0.3"));
  meeting.pass(60s);
  ASSERT_EQ(meeting.said(), "spare>3");
  EXPECT_EQ(meeting.sent[0].message.text, "the job runs with 2 of 2 nodes: this one waits until it is needed");
  meeting.lose(2, "silence for 5s");
  meeting.say(1, Kind::kReport);
  meeting.ready(1, 1, 0);
  ASSERT_EQ(meeting.said(), "lost>1 over>1 begin>1 begin>3");
  EXPECT_EQ(meeting.sent[3].message.membership->first_names[1], "node-10.0.0.3");
}

TEST(ElasticCoordinator, LetsASpareWaitWhoseRankIsTaken) {
  Meeting meeting(2, 3);
  meeting.join(1, node_at("10.0.0.1", 1, 0));
  meeting.join(2, node_at("10.0.0.2", 1, 1));
  meeting.pass(1s);
  JoinRecord again = node_at("10.0.0.2", 1, 1);
  again.token = "started again";
  meeting.join(3, again);
  meeting.pass(9s);
  EXPECT_EQ(meeting.said(), "begin>1 begin>2 spare>3") << "it is not known yet that its last launcher is dead";
  meeting.lose(2, "silence for 5s");
  meeting.say(1, Kind::kReport);
  meeting.ready(1, 1, 0);
  EXPECT_EQ(meeting.said(), "lost>1 over>1 begin>1 begin>3");
}

TEST(ElasticCoordinator, TellsSparesHowTheJobEnds) {
  for (const std::string end : {"", "rank 1 exited with code 7"}) {
    Meeting meeting;
    meeting.join_two();
    meeting.join(3, node_at("10.0.0.3"));
    meeting.say(1, Kind::kReport);
    meeting.say(2, Kind::kReport);
    (void)meeting.said();
    meeting.say(1, Kind::kLeave, 0, end);
    ASSERT_EQ(meeting.said(), "ended>3");
    EXPECT_EQ(meeting.sent[0].message.text, end);
    EXPECT_TRUE(meeting.sent[0].last);
    meeting.say(2, Kind::kLeave, 0, end);
    EXPECT_TRUE(meeting.coordinator.over());
  }
}

TEST(ElasticCoordinator, GoesOnWhenANodeLeavesByItself) {
  Meeting meeting = three_of_four();
  meeting.say(3, Kind::kDropOut, 0, "its lrun received SIGTERM and left the job");
  ASSERT_EQ(meeting.said(), "lost>1 lost>2");
  EXPECT_EQ(meeting.sent[0].message.text, "its lrun received SIGTERM and left the job");
  for (LauncherId id = 1; id <= 2; ++id) meeting.say(id, Kind::kReport);
  for (LauncherId id = 1; id <= 2; ++id) meeting.ready(id, 1, 0);
  EXPECT_EQ(meeting.said(), "over>1 over>2 begin>1 begin>2");
}

TEST(ElasticCoordinator, WaitsForOthersWhenTooFewAreLeft) {
  Meeting meeting;
  meeting.join_two();
  meeting.lose(2, "silence for 5s");
  meeting.say(1, Kind::kReport);
  meeting.ready(1, 1, 0);
  EXPECT_EQ(meeting.said(), "lost>1 over>1");
  meeting.pass(5s);
  ASSERT_EQ(meeting.said(), "waiting>1");
  EXPECT_EQ(meeting.sent[0].message.text, "joined: 'node-10.0.0.1' from 10.0.0.1 (1 worker); missing: 1 of 2 nodes");
  meeting.join(3, node_at("10.0.0.2"));
  EXPECT_EQ(meeting.said(), "spare>3 begin>1 begin>3");
}

TEST(ElasticCoordinator, EndsWhenNobodyTakesThePlaceOfALostNode) {
  Meeting meeting;
  meeting.join_two();
  meeting.lose(2, "silence for 5s");
  meeting.say(1, Kind::kReport);
  meeting.ready(1, 1, 0);
  (void)meeting.said();
  meeting.pass(60s);
  ASSERT_EQ(meeting.said(), "ended>1");
  EXPECT_EQ(meeting.sent[0].message.text,
            "not enough nodes in 1m: joined: 'node-10.0.0.1' from 10.0.0.1 (1 worker); missing: 1 of 2 nodes");
  EXPECT_TRUE(meeting.coordinator.over());
}

TEST(ElasticCoordinator, GoesOnWhenANodeIsLostBetweenTwoRounds) {
  Meeting meeting = three_of_four();
  for (LauncherId id = 1; id <= 3; ++id) meeting.say(id, Kind::kReport);
  meeting.ready(1, 1, 1);
  meeting.ready(3, 1, 1);
  (void)meeting.said();
  meeting.lose(2, "its launcher ended");
  EXPECT_EQ(meeting.said(), "lost>1 lost>3 begin>1 begin>3") << "nobody else is waited for";
}

TEST(ElasticCoordinator, DoesNotMissWhoIsLostAfterItsReport) {
  Meeting meeting = three_of_four();
  meeting.say(3, Kind::kReport, 0, "c");
  meeting.lose(3, "its launcher ended");
  EXPECT_EQ(meeting.said(), "") << "its workers were done";
  meeting.say(1, Kind::kReport, 0, "a");
  meeting.say(2, Kind::kReport, 0, "b");
  ASSERT_EQ(meeting.said(), "over>1 over>2");
  EXPECT_EQ(meeting.sent[0].message.text, "c|a|b");
}

TEST(ElasticCoordinator, BeginsWithSparesAloneWhenAllNodesAreLost) {
  Meeting meeting(1, 1);
  meeting.join(1, node_at("10.0.0.1"));
  meeting.join(2, node_at("10.0.0.2"));
  meeting.lose(1, "silence for 5s");
  EXPECT_EQ(meeting.said(), "begin>1 spare>2 begin>2");
}

TEST(ElasticCoordinator, TakesAMemberThatConnectsAgainForANewcomer) {
  Meeting meeting(1, 2);
  meeting.join(1, node_at("10.0.0.1"));
  meeting.join(2, node_at("10.0.0.2"));
  meeting.join(3, node_at("10.0.0.2"));  // kBegin did not reach it, and nobody knows yet that its connection is dead
  EXPECT_EQ(meeting.said(), "begin>1 begin>2 lost>1 spare>3");
  meeting.say(1, Kind::kReport);
  meeting.ready(1, 1, 0);
  EXPECT_EQ(meeting.said(), "over>1 begin>1 begin>3");
}

TEST(ElasticCoordinator, NamesAFewOfManyNewcomers) {
  Meeting meeting(1, 40);
  meeting.join(1, node_at("10.0.0.1"));
  meeting.pass(1s);
  for (LauncherId id = 2; id <= 20; ++id) meeting.join(id, node_at("10.0.0." + std::to_string(id)));
  (void)meeting.said();
  meeting.pass(1s);
  ASSERT_EQ(meeting.said(), "resize>1");
  const std::string& text = meeting.sent[0].message.text;
  EXPECT_NE(text.find("node-10.0.0.17 and 3 more have joined: all start again on 20 of 1:40 nodes"), text.npos) << text;
  EXPECT_EQ(text.find("node-10.0.0.18"), text.npos) << text;
  EXPECT_EQ(meeting.sent[0].message.node.find("node-10.0.0.18"), text.npos);
}

TEST(ElasticCoordinator, DoesNotBeginAgainWithSparesWhatWasToldToStop) {
  Meeting meeting(1, 2);
  meeting.join_two();
  meeting.join(3, node_at("10.0.0.3"));
  meeting.say(1, Kind::kStopping, 0, "received SIGINT");
  (void)meeting.said();
  meeting.lose(1, "its launcher ended");
  meeting.lose(2, "its launcher ended");
  ASSERT_EQ(meeting.said(), "lost>2 ended>3");
  EXPECT_EQ(meeting.sent[1].message.text, "its nodes are lost");
  EXPECT_TRUE(meeting.coordinator.over());
}

TEST(ElasticCoordinator, DoesNotBeginAgainWithSparesWhatMayBeDone) {
  Meeting meeting(1, 2);
  meeting.join_two();
  meeting.join(3, node_at("10.0.0.3"));
  for (LauncherId id = 1; id <= 2; ++id) meeting.say(id, Kind::kReport, 0, "nobody here can read it");
  (void)meeting.said();
  meeting.lose(1, "its launcher ended");
  meeting.lose(2, "its launcher ended");
  EXPECT_EQ(meeting.said(), "lost>2 ended>3");
}

TEST(ElasticCoordinator, BeginsAgainWithSparesWhatWasToGoOn) {
  Meeting meeting(1, 2);
  meeting.join_two();
  meeting.join(3, node_at("10.0.0.3"));
  for (LauncherId id = 1; id <= 2; ++id) meeting.say(id, Kind::kReport);
  meeting.ready(1, 1, 1);
  (void)meeting.said();
  meeting.lose(1, "its launcher ended");
  meeting.lose(2, "its launcher ended");
  meeting.pass(1s);
  ASSERT_EQ(meeting.said(), "lost>2 begin>3");
  EXPECT_EQ(meeting.sent[1].message.membership->attempt, 1);
}

TEST(ElasticCoordinator, GoesOnWithoutANodeThatLeavesBetweenTwoRounds) {
  Meeting meeting = three_of_four();
  meeting.lose(3, "silence for 5s");
  for (LauncherId id = 1; id <= 2; ++id) meeting.say(id, Kind::kReport);
  meeting.join(4, node_at("10.0.0.4"));
  (void)meeting.said();
  meeting.say(2, Kind::kDropOut, 0, "a worker of it cannot be ended");
  meeting.ready(1, 1, 0);
  meeting.pass(1s);
  ASSERT_EQ(meeting.said(), "lost>1 begin>1 begin>4");
  EXPECT_EQ(meeting.sent[0].message.text, "a worker of it cannot be ended");
}

/// Twice in each last call a node comes and goes, until something else happens than that it is told to wait.
/// \return what, and after how many seconds of its doing: 'resize>1 after 9'.
std::string said_despite_restless_node(Meeting& meeting) {
  for (LauncherId id = 100; id < 200; ++id) {
    meeting.join(id, node_at("10.0.1.1"));
    meeting.lose(id, "its launcher ended");
    meeting.pass(500ms);
    std::string said = meeting.said();
    const std::string waits = "spare>" + std::to_string(id);
    if (said.starts_with(waits)) said.erase(0, std::min(said.size(), waits.size() + 1));
    if (!said.empty() && !said.starts_with("waiting")) return said + " after " + std::to_string((id - 99) / 2);
  }
  return "nothing";
}

TEST(ElasticCoordinator, BeginsThoughANodeComesAndGoes) {
  Meeting meeting(2, 4);
  meeting.join(1, node_at("10.0.0.1"));
  meeting.join(2, node_at("10.0.0.2"));
  EXPECT_EQ(said_despite_restless_node(meeting), "begin>1 begin>2 after 10");
}

TEST(ElasticCoordinator, TakesInANodeThoughAnotherComesAndGoes) {
  Meeting meeting(1, 4);
  meeting.join(1, node_at("10.0.0.1"));
  meeting.pass(60s);
  meeting.join(2, node_at("10.0.0.2"));
  EXPECT_EQ(meeting.said(), "begin>1 spare>2");
  EXPECT_EQ(said_despite_restless_node(meeting), "resize>1 after 10");
}

TEST(ElasticCoordinator, BeginsAgainThoughANodeComesAndGoes) {
  Meeting meeting = three_of_four();
  meeting.lose(3, "silence for 5s");
  for (LauncherId id = 1; id <= 2; ++id) meeting.say(id, Kind::kReport);
  meeting.join(4, node_at("10.0.1.1"));
  meeting.lose(4, "its launcher ended");
  for (LauncherId id = 1; id <= 2; ++id) meeting.ready(id, 1, 0);
  (void)meeting.said();
  EXPECT_EQ(said_despite_restless_node(meeting), "begin>1 begin>2 after 10");
}

TEST(ElasticCoordinator, WaitsAWholeLastCallForWhoComesAfterOneThatLeft) {
  Meeting meeting(1, 4);
  meeting.join(1, node_at("10.0.0.1"));
  meeting.pass(1s);
  meeting.join(2, node_at("10.0.0.2"));
  meeting.lose(2, "its launcher ended");
  meeting.pass(60s);
  meeting.join(3, node_at("10.0.0.3"));
  (void)meeting.said();
  meeting.pass(900ms);
  EXPECT_EQ(meeting.said(), "");
  meeting.pass(100ms);
  EXPECT_EQ(meeting.said(), "resize>1");
}

/// A job of one node and one that comes and goes.
class ComingAndGoing : public ::testing::Test {
 protected:
  void SetUp() override {
    meeting_.join(1, node_at("10.0.0.1"));
    meeting_.pass(1s);
    (void)meeting_.said();
  }
  void come_and_go(JoinRecord node) {
    const int round = 2 * times_++;
    meeting_.join(++last_, std::move(node));
    meeting_.say(1, Kind::kReport, round);
    meeting_.ready(1, round + 1, 0);
    (void)meeting_.said();
    meeting_.lose(last_, "silence for 5s");
    meeting_.say(1, Kind::kReport, round + 1);
    meeting_.ready(1, round + 2, 0);
    meeting_.pass(1s);
  }

  Meeting meeting_{1, 2};
  LauncherId last_ = 1;
  int times_ = 0;
};

TEST_F(ComingAndGoing, EndsForANodeThatDoesItAgainAndAgain) {
  for (int i = 0; i < 5; ++i) {
    come_and_go(node_at("10.0.0.2"));
    ASSERT_EQ(meeting_.said(), "lost>1 over>1 begin>1") << i;
    const std::string& text = meeting_.sent[0].message.text;
    EXPECT_EQ(text == "silence for 5s", i < 4) << text;
  }
  EXPECT_EQ(meeting_.sent[0].message.text,
            "silence for 5s; it has left the job 5 times within 10m and is not let in for a while");
  meeting_.join(++last_, node_at("10.0.0.2"));
  ASSERT_EQ(meeting_.said(), "refused>7");
  EXPECT_EQ(meeting_.sent[0].message.text,
            "node node-10.0.0.2 has left the job 5 times within 10m: it is let in again after 595s");
  meeting_.join(++last_, node_at("10.0.0.3"));
  EXPECT_EQ(meeting_.said(), "spare>8 resize>1") << "other nodes may come";
}

TEST_F(ComingAndGoing, IsForgivenAfterAWhile) {
  for (int i = 0; i < 5; ++i) come_and_go(node_at("10.0.0.2"));
  meeting_.pass(10min);
  (void)meeting_.said();
  meeting_.join(++last_, node_at("10.0.0.2"));
  EXPECT_EQ(meeting_.said(), "spare>7 resize>1");
}

TEST_F(ComingAndGoing, IsNoMatterWhereItIsRare) {
  for (int i = 0; i < 10; ++i) {
    come_and_go(node_at("10.0.0.2"));
    ASSERT_EQ(meeting_.said(), "lost>1 over>1 begin>1") << i;
    meeting_.pass(3min);
  }
}

}  // namespace
}  // namespace lrun::launcher
