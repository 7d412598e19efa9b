// Launchers that a coordinator does not let take part, and those that cannot.
#include <gtest/gtest.h>

#include "coordinator_harness.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;
using Kind = LauncherMessage::Kind;
using test::node_at;
using Harness = test::CoordinatorHarness;

JoinRecord with_settings(JoinRecord record, const std::string& settings) {
  record.settings = settings;
  return record;
}

JoinRecord without_program(JoinRecord record) {
  record.cannot_start = "cannot run 'train': No such file or directory";
  record.report = "its report";
  return record;
}

JoinRecord running(JoinRecord record, const std::string& program, const std::string& digest) {
  record.run_name = "mine";
  record.program = program;
  record.command_digest = digest;
  return record;
}

/// Two nodes of a job of 2 that has begun, with ranks that they asked for.
Harness two_with_ranks() {
  Harness harness;
  harness.join(1, node_at("10.0.0.1", 1, 0));
  harness.join(2, node_at("10.0.0.2", 1, 1));
  EXPECT_EQ(harness.said(), "begin>1 begin>2");
  return harness;
}

TEST(Refusals, AreToldToThoseThatWait) {
  Harness harness;
  harness.join(1, node_at("10.0.0.1", 1, 0));
  harness.join(2, node_at("10.0.0.2", 1, 0));
  ASSERT_EQ(harness.said(), "refused>2 waiting>1");
  const std::string table =
      "joined: 'node-10.0.0.1' from 10.0.0.1 (1 worker, node rank 0); missing: 1 of 2 nodes (node rank 1); node "
      "'node-10.0.0.2' from 10.0.0.2 (1 worker, node rank 0) was rejected: node rank 0 is taken by 'node-10.0.0.1' "
      "from 10.0.0.1 (1 worker, node rank 0)";
  EXPECT_EQ(harness.sent[1].message.text, table);
  harness.join(3, node_at("10.0.0.2", 1, 0));
  EXPECT_EQ(harness.said(), "refused>3") << "once of a node and a reason";
  harness.pass(60s);
  ASSERT_EQ(harness.said(), "refused>1");
  EXPECT_EQ(harness.sent[0].message.text, "not enough nodes in 1m: " + table) << "at the end, too";
  EXPECT_TRUE(harness.coordinator.outbox().take_warnings().empty());
}

TEST(Refusals, AreWarningsWhereNobodyWaits) {
  Harness harness = two_with_ranks();
  harness.join(3, with_settings(node_at("10.0.0.3"), "--strategy dp"));
  EXPECT_EQ(harness.said(), "refused>3");
  EXPECT_EQ(
      harness.coordinator.outbox().take_warnings(),
      (std::vector<std::string>{"node 'node-10.0.0.3' from 10.0.0.3 (1 worker) was rejected: node 'node-10.0.0.1' has "
                                "'strategy ddp', and node 'node-10.0.0.3' has '--strategy dp'"}));
  EXPECT_TRUE(harness.coordinator.outbox().take_warnings().empty());
}

TEST(Refusals, AreBoundedInNumber) {
  Harness harness;
  harness.join(1, node_at("10.0.0.1", 1, 0));
  int told = 0;
  for (ConnectionId id = 2; id < 202; ++id) {
    harness.join(id, node_at("10.0.1." + std::to_string(id), 1, 0));
    told += harness.said().find("waiting>1") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(told, 64);
  EXPECT_LT(harness.coordinator.who_is_there().size(), 1000U);
}

TEST(Refusals, NameWhatDiffersAndWhatToType) {
  const auto refusal = [](JoinRecord first, JoinRecord second) {
    Harness harness;
    harness.join(1, std::move(first));
    harness.join(2, std::move(second));
    (void)harness.said();
    return harness.sent.front().message;
  };
  const std::string common = "--strategy ddp, --max-restarts ";
  const LauncherMessage restarts = refusal(with_settings(node_at("10.0.0.1"), common + "0"),
                                           with_settings(node_at("10.0.0.2"), common + "3, --spares 1"));
  EXPECT_EQ(
      restarts.text,
      "node 'node-10.0.0.1' has '--max-restarts 0', and node 'node-10.0.0.2' has '--max-restarts 3', '--spares 1'");
  EXPECT_EQ(restarts.hint, "give every node the same options");
  const LauncherMessage spares = refusal(with_settings(node_at("10.0.0.1"), common + "3, --spares 1"),
                                         with_settings(node_at("10.0.0.2"), common + "3"));
  EXPECT_EQ(spares.text, "node 'node-10.0.0.1' has '--spares 1', and node 'node-10.0.0.2' does not");
  const LauncherMessage rank = refusal(node_at("10.0.0.1", 1, 0), node_at("10.0.0.2", 1, 0));
  EXPECT_EQ(rank.hint, "give each node a '--node-rank' of its own, or none");
}

/// Else it would wait for as long as the job runs, and end with the code of success.
TEST(Refusals, OfASpareWhoseRankALivingNodeHasComeAfterTwoHeartbeats) {
  Harness harness = two_with_ranks();
  harness.join(3, node_at("10.0.0.3", 1, 1));
  harness.join(4, node_at("10.0.0.4"));
  EXPECT_EQ(harness.said(), "spare>3 spare>4");
  EXPECT_EQ(harness.coordinator.deadline(), harness.now + 10s);
  harness.pass(9s);
  EXPECT_EQ(harness.said(), "") << "the other one may be dead, and nobody knows it yet";
  harness.pass(1s);
  ASSERT_EQ(harness.said(), "refused>3") << "and not the spare that takes any rank";
  EXPECT_EQ(harness.sent[0].message.text,
            "node rank 1 is taken by 'node-10.0.0.2' from 10.0.0.2 (1 worker, node rank 1)");
  EXPECT_EQ(harness.coordinator.outbox().take_warnings().size(), 1U);
  EXPECT_FALSE(harness.coordinator.deadline());
}

TEST(Refusals, DoNotMeetANodeThatIsStartedAgain) {
  Harness harness = two_with_ranks();
  JoinRecord again = node_at("10.0.0.2", 1, 1);
  again.token = "another process of it";
  harness.join(3, again);
  EXPECT_EQ(harness.said(), "spare>3");
  harness.pass(5s);
  harness.lose(2, "silence for 5s");
  EXPECT_EQ(harness.said(), "lost>1");
  harness.pass(6s);
  EXPECT_EQ(harness.said(), "") << "the round is being stopped";
  harness.say(1, Kind::kReport);
  harness.ready(1, 1, 0);
  EXPECT_EQ(harness.said(), "over>1 begin>1 begin>3");
  harness.pass(60s);
  EXPECT_EQ(harness.said(), "");
}

/// Nodes of a job with a name may have arguments of their own, and a spare is one of them; or it is a second job.
TEST(Refusals, AreWarningsWhereArgumentsDiffer) {
  Harness harness;
  harness.join(1, running(node_at("10.0.0.1"), "train.py", "aa"));
  harness.join(2, running(node_at("10.0.0.2"), "train.py", "bb"));
  EXPECT_EQ(harness.said(), "begin>1 begin>2");
  EXPECT_EQ(harness.coordinator.outbox().take_warnings(),
            (std::vector<std::string>{"node 'node-10.0.0.1' runs 'train.py' with other arguments than node "
                                      "'node-10.0.0.2': if these are two jobs, give them different '--rdzv-id's"}));
  harness.join(3, running(node_at("10.0.0.3"), "train.py", "cc"));
  harness.join(4, running(node_at("10.0.0.4"), "train.py", "aa"));
  ASSERT_EQ(harness.said(), "spare>3 spare>4");
  EXPECT_EQ(
      harness.sent[0].message.text,
      "the job runs with 2 of 2 nodes: this node waits until it is needed; node 'node-10.0.0.1' runs 'train.py' with "
      "other arguments than node 'node-10.0.0.3'");
  EXPECT_EQ(harness.sent[1].message.text, "the job runs with 2 of 2 nodes: this node waits until it is needed");
  harness.pass(60s);
  EXPECT_EQ(harness.said(), "");
}

/// torchrun compares nothing: what it would let in is let in.
TEST(Refusals, AreWarningsWhereProgramsMayDiffer) {
  Harness harness;
  harness.join(1, running(node_at("10.0.0.1"), "train.py", ""));
  harness.join(2, running(node_at("10.0.0.2"), "eval.py", ""));
  EXPECT_EQ(harness.said(), "begin>1 begin>2");
  EXPECT_EQ(harness.coordinator.outbox().take_warnings(),
            (std::vector<std::string>{"node 'node-10.0.0.1' runs 'train.py' and node 'node-10.0.0.2' 'eval.py': if "
                                      "these are two jobs, give them different '--rdzv-id's"}));
  harness.join(3, running(node_at("10.0.0.3"), "third.py", ""));
  harness.pass(60s);
  EXPECT_EQ(harness.said(), "spare>3");
  EXPECT_TRUE(harness.coordinator.outbox().take_warnings().empty()) << "said once";
}

TEST(Failures, EndAJobThatNeedsEveryNodeOnAllOfThem) {
  Harness harness(3, 3);
  harness.join(1, node_at("10.0.0.1"));
  harness.join(2, without_program(node_at("10.0.0.2")));
  ASSERT_EQ(harness.said(), "ended>2 over>1");
  EXPECT_EQ(harness.sent[1].message.text, "its report");
  EXPECT_TRUE(harness.sent[1].last);
  EXPECT_FALSE(harness.coordinator.over()) << "the third may come";
  harness.join(3, node_at("10.0.0.3"));
  EXPECT_EQ(harness.said(), "over>3");
  EXPECT_TRUE(harness.coordinator.over());
}

TEST(Failures, AreNotToldForEver) {
  Harness harness;
  harness.join(1, without_program(node_at("10.0.0.1")));
  EXPECT_EQ(harness.said(), "ended>1");
  EXPECT_EQ(harness.coordinator.deadline(), harness.now + 10s);
  JoinRecord foreign = node_at("10.0.0.9");
  foreign.run_name = "another";
  harness.join(2, foreign);
  EXPECT_EQ(harness.said(), "refused>2") << "it is no affair of another job";
  harness.pass(10s);
  EXPECT_TRUE(harness.coordinator.over());
}

TEST(Failures, AreNotedByAJobThatCanDoWithoutTheNode) {
  Harness harness(1, 3);
  harness.join(1, node_at("10.0.0.1"));
  harness.join(2, without_program(node_at("10.0.0.2")));
  ASSERT_EQ(harness.said(), "ended>2 waiting>1");
  EXPECT_EQ(harness.sent[1].message.text,
            "joined: 'node-10.0.0.1' from 10.0.0.1 (1 worker); node 'node-10.0.0.2' from 10.0.0.2 "
            "(1 worker) cannot take part: cannot run 'train': No such file or directory");
  harness.pass(1s);
  EXPECT_EQ(harness.said(), "begin>1");
  harness.join(3, without_program(node_at("10.0.0.3")));
  EXPECT_EQ(harness.said(), "ended>3") << "nobody starts anew for it";
  EXPECT_EQ(harness.coordinator.outbox().take_warnings().size(), 1U);
}

TEST(Failures, DoNotEndAJobThatRuns) {
  Harness harness = two_with_ranks();
  harness.join(3, without_program(node_at("10.0.0.3")));
  EXPECT_EQ(harness.said(), "ended>3");
  EXPECT_EQ(harness.coordinator.outbox().take_warnings(),
            (std::vector<std::string>{"node 'node-10.0.0.3' from 10.0.0.3 (1 worker) cannot take part: cannot run "
                                      "'train': No such file or directory"}));
}

TEST(Failures, OfTheLeadersOwnLauncherEndAnyJob) {
  Harness harness(1, 2);
  const JoinRecord host = without_program(node_at("10.0.0.1"));
  harness.led_by(host.token, false, {});
  harness.join(1, node_at("10.0.0.2"));
  harness.join(2, host);
  EXPECT_EQ(harness.said(), "ended>2 over>1") << "nobody else holds it, and who comes before it waits for it";
  EXPECT_TRUE(harness.coordinator.over());
}

}  // namespace
}  // namespace lrun::launcher
