// Launchers that a coordinator does not let take part, and those that cannot.
#include <gtest/gtest.h>

#include "coordinator_harness.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;
using Kind = LauncherMessage::Kind;
using test::node_at;
using Meeting = test::CoordinatorHarness;

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
Meeting two_with_ranks() {
  Meeting meeting;
  meeting.join(1, node_at("10.0.0.1", 1, 0));
  meeting.join(2, node_at("10.0.0.2", 1, 1));
  EXPECT_EQ(meeting.said(), "begin>1 begin>2");
  return meeting;
}

TEST(Refusals, AreToldToThoseThatWait) {
  Meeting meeting;
  meeting.join(1, node_at("10.0.0.1", 1, 0));
  meeting.join(2, node_at("10.0.0.2", 1, 0));
  ASSERT_EQ(meeting.said(), "refused>2 waiting>1");
  const std::string table =
      "joined: 'node-10.0.0.1' from 10.0.0.1 (1 worker, node rank 0); missing: 1 of 2 nodes (node rank 1); node "
      "'node-10.0.0.2' from 10.0.0.2 (1 worker, node rank 0) was turned away: node rank 0 is taken by 'node-10.0.0.1' "
      "from 10.0.0.1 (1 worker, node rank 0)";
  EXPECT_EQ(meeting.sent[1].message.text, table);
  meeting.join(3, node_at("10.0.0.2", 1, 0));
  EXPECT_EQ(meeting.said(), "refused>3") << "once of a node and a reason";
  meeting.pass(60s);
  ASSERT_EQ(meeting.said(), "refused>1");
  EXPECT_EQ(meeting.sent[0].message.text, "not enough nodes in 1m: " + table) << "at the end, too";
  EXPECT_TRUE(meeting.coordinator.outbox().take_warnings().empty());
}

TEST(Refusals, AreWarningsWhereNobodyWaits) {
  Meeting meeting = two_with_ranks();
  meeting.join(3, with_settings(node_at("10.0.0.3"), "--strategy dp"));
  EXPECT_EQ(meeting.said(), "refused>3");
  EXPECT_EQ(meeting.coordinator.outbox().take_warnings(),
            (std::vector<std::string>{"node 'node-10.0.0.3' from 10.0.0.3 (1 worker) was turned away: the job has "
                                      "'strategy ddp', as 'node-10.0.0.1' says; here it is '--strategy dp'"}));
  EXPECT_TRUE(meeting.coordinator.outbox().take_warnings().empty());
}

TEST(Refusals, AreBoundedInNumber) {
  Meeting meeting;
  meeting.join(1, node_at("10.0.0.1", 1, 0));
  int told = 0;
  for (LauncherId id = 2; id < 202; ++id) {
    meeting.join(id, node_at("10.0.1." + std::to_string(id), 1, 0));
    told += meeting.said().find("waiting>1") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(told, 64);
  EXPECT_LT(meeting.coordinator.who_is_there().size(), 1000U);
}

TEST(Refusals, NameWhatDiffersAndWhatToType) {
  const auto refusal = [](JoinRecord first, JoinRecord second) {
    Meeting meeting;
    meeting.join(1, std::move(first));
    meeting.join(2, std::move(second));
    (void)meeting.said();
    return meeting.sent.front().message;
  };
  const std::string common = "--strategy ddp, --max-restarts ";
  const LauncherMessage restarts = refusal(with_settings(node_at("10.0.0.1"), common + "0"),
                                           with_settings(node_at("10.0.0.2"), common + "3, --spares 1"));
  EXPECT_EQ(restarts.text,
            "the job has '--max-restarts 0', as 'node-10.0.0.1' says; here it is '--max-restarts 3', '--spares 1'");
  EXPECT_EQ(restarts.hint, "give every node the same");
  const LauncherMessage spares = refusal(with_settings(node_at("10.0.0.1"), common + "3, --spares 1"),
                                         with_settings(node_at("10.0.0.2"), common + "3"));
  EXPECT_EQ(spares.text, "the job has '--spares 1', as 'node-10.0.0.1' says; here it is without that");
  const LauncherMessage rank = refusal(node_at("10.0.0.1", 1, 0), node_at("10.0.0.2", 1, 0));
  EXPECT_EQ(rank.hint, "give each node a '--node-rank' of its own, or none");
}

/// Else it would wait for as long as the job runs, and end with the code of success.
TEST(Refusals, OfASpareWhoseRankALivingNodeHasComeAfterTwoHeartbeats) {
  Meeting meeting = two_with_ranks();
  meeting.join(3, node_at("10.0.0.3", 1, 1));
  meeting.join(4, node_at("10.0.0.4"));
  EXPECT_EQ(meeting.said(), "spare>3 spare>4");
  EXPECT_EQ(meeting.coordinator.deadline(), meeting.now + 10s);
  meeting.pass(9s);
  EXPECT_EQ(meeting.said(), "") << "the other one may be dead, and nobody knows it yet";
  meeting.pass(1s);
  ASSERT_EQ(meeting.said(), "refused>3") << "and not the spare that takes any rank";
  EXPECT_EQ(meeting.sent[0].message.text,
            "node rank 1 is taken by 'node-10.0.0.2' from 10.0.0.2 (1 worker, node rank 1)");
  EXPECT_EQ(meeting.coordinator.outbox().take_warnings().size(), 1U);
  EXPECT_FALSE(meeting.coordinator.deadline());
}

TEST(Refusals, DoNotMeetANodeThatIsStartedAgain) {
  Meeting meeting = two_with_ranks();
  JoinRecord again = node_at("10.0.0.2", 1, 1);
  again.token = "another process of it";
  meeting.join(3, again);
  EXPECT_EQ(meeting.said(), "spare>3");
  meeting.pass(5s);
  meeting.lose(2, "silence for 5s");
  EXPECT_EQ(meeting.said(), "lost>1");
  meeting.pass(6s);
  EXPECT_EQ(meeting.said(), "") << "the round is being stopped";
  meeting.say(1, Kind::kReport);
  meeting.ready(1, 1, 0);
  EXPECT_EQ(meeting.said(), "over>1 begin>1 begin>3");
  meeting.pass(60s);
  EXPECT_EQ(meeting.said(), "");
}

/// Nodes of a job with a name may have arguments of their own, and a spare is one of them; or it is a second job.
TEST(Refusals, AreWarningsWhereArgumentsDiffer) {
  Meeting meeting;
  meeting.join(1, running(node_at("10.0.0.1"), "train.py", "aa"));
  meeting.join(2, running(node_at("10.0.0.2"), "train.py", "bb"));
  EXPECT_EQ(meeting.said(), "begin>1 begin>2");
  EXPECT_EQ(meeting.coordinator.outbox().take_warnings(),
            (std::vector<std::string>{"node 'node-10.0.0.1' runs 'train.py' with other arguments than node "
                                      "'node-10.0.0.2': two jobs that are to be apart have different '--rdzv-id's"}));
  meeting.join(3, running(node_at("10.0.0.3"), "train.py", "cc"));
  meeting.join(4, running(node_at("10.0.0.4"), "train.py", "aa"));
  ASSERT_EQ(meeting.said(), "spare>3 spare>4");
  EXPECT_EQ(
      meeting.sent[0].message.text,
      "the job runs with 2 of 2 nodes: this one waits until it is needed; node 'node-10.0.0.1' runs 'train.py' with "
      "other arguments than node 'node-10.0.0.3'");
  EXPECT_EQ(meeting.sent[1].message.text, "the job runs with 2 of 2 nodes: this one waits until it is needed");
  meeting.pass(60s);
  EXPECT_EQ(meeting.said(), "");
}

/// torchrun compares nothing: what it would let in is let in.
TEST(Refusals, AreWarningsWhereProgramsMayDiffer) {
  Meeting meeting;
  meeting.join(1, running(node_at("10.0.0.1"), "train.py", ""));
  meeting.join(2, running(node_at("10.0.0.2"), "eval.py", ""));
  EXPECT_EQ(meeting.said(), "begin>1 begin>2");
  EXPECT_EQ(meeting.coordinator.outbox().take_warnings(),
            (std::vector<std::string>{"node 'node-10.0.0.1' runs 'train.py' and node 'node-10.0.0.2' 'eval.py': two "
                                      "jobs that are to be apart have different '--rdzv-id's"}));
  meeting.join(3, running(node_at("10.0.0.3"), "third.py", ""));
  meeting.pass(60s);
  EXPECT_EQ(meeting.said(), "spare>3");
  EXPECT_TRUE(meeting.coordinator.outbox().take_warnings().empty()) << "said once";
}

TEST(Failures, EndAJobThatNeedsEveryNodeOnAllOfThem) {
  Meeting meeting(3, 3);
  meeting.join(1, node_at("10.0.0.1"));
  meeting.join(2, without_program(node_at("10.0.0.2")));
  ASSERT_EQ(meeting.said(), "ended>2 over>1");
  EXPECT_EQ(meeting.sent[1].message.text, "its report");
  EXPECT_TRUE(meeting.sent[1].last);
  EXPECT_FALSE(meeting.coordinator.over()) << "the third may come";
  meeting.join(3, node_at("10.0.0.3"));
  EXPECT_EQ(meeting.said(), "over>3");
  EXPECT_TRUE(meeting.coordinator.over());
}

TEST(Failures, AreNotToldForEver) {
  Meeting meeting;
  meeting.join(1, without_program(node_at("10.0.0.1")));
  EXPECT_EQ(meeting.said(), "ended>1");
  EXPECT_EQ(meeting.coordinator.deadline(), meeting.now + 10s);
  JoinRecord stranger = node_at("10.0.0.9");
  stranger.run_name = "another";
  meeting.join(2, stranger);
  EXPECT_EQ(meeting.said(), "refused>2") << "it is no affair of another job";
  meeting.pass(10s);
  EXPECT_TRUE(meeting.coordinator.over());
}

TEST(Failures, AreNotedByAJobThatCanDoWithoutTheNode) {
  Meeting meeting(1, 3);
  meeting.join(1, node_at("10.0.0.1"));
  meeting.join(2, without_program(node_at("10.0.0.2")));
  ASSERT_EQ(meeting.said(), "ended>2 waiting>1");
  EXPECT_EQ(meeting.sent[1].message.text,
            "joined: 'node-10.0.0.1' from 10.0.0.1 (1 worker); node 'node-10.0.0.2' from 10.0.0.2 "
            "(1 worker) cannot take part: cannot run 'train': No such file or directory");
  meeting.pass(1s);
  EXPECT_EQ(meeting.said(), "begin>1");
  meeting.join(3, without_program(node_at("10.0.0.3")));
  EXPECT_EQ(meeting.said(), "ended>3") << "nobody starts anew for it";
  EXPECT_EQ(meeting.coordinator.outbox().take_warnings().size(), 1U);
}

TEST(Failures, DoNotEndAJobThatRuns) {
  Meeting meeting = two_with_ranks();
  meeting.join(3, without_program(node_at("10.0.0.3")));
  EXPECT_EQ(meeting.said(), "ended>3");
  EXPECT_EQ(meeting.coordinator.outbox().take_warnings(),
            (std::vector<std::string>{"node 'node-10.0.0.3' from 10.0.0.3 (1 worker) cannot take part: cannot run "
                                      "'train': No such file or directory"}));
}

TEST(Failures, OfTheLauncherThatHoldsTheMeetingEndAnyJob) {
  Meeting meeting(1, 2);
  const JoinRecord host = without_program(node_at("10.0.0.1"));
  meeting.led_by(host.token, false, {});
  meeting.join(1, node_at("10.0.0.2"));
  meeting.join(2, host);
  EXPECT_EQ(meeting.said(), "ended>2 over>1") << "nobody else holds it, and who comes before it waits for it";
  EXPECT_TRUE(meeting.coordinator.over());
}

}  // namespace
}  // namespace lrun::launcher
