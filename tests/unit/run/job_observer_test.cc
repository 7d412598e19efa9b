#include "run/job_observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "support/fake_job.h"

namespace lrun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = RunEnd::Kind;

/// Nothing but the last stop.
class LastStop final : public RunObserver {
 public:
  void worker_ended(const FailureRecord&) override {}
  void settling(const FailureRecord&, Duration) override {}
  void stopping(const RunEnd& end, const FailureRecord* cause, RunningWorkers others) override {
    last = end;
    cause_rank = cause != nullptr ? cause->rank : -1;
    to_stop = others;
  }
  void killing(int) override {}
  void terminal_came_back(int, int) override {}
  void suspended() override {}
  void resumed() override {}

  RunEnd last;
  int cause_rank = -1;
  RunningWorkers to_stop;
};

class JobObserverTest : public ::testing::Test {
 protected:
  JobObserverTest() {
    plan.host = "n0";
    plan.min_nodes = plan.max_nodes = 3;
  }

  JobObserver& observer() {
    if (!observer_) {
      observer_.emplace(job, start, plan, next,
                        JobObserver::Calls{.stop =
                                               [this](const RunEnd& end, bool victim) {
                                                 ++stops;
                                                 stopped = end;
                                                 is_victim = victim;
                                               },
                                           .over =
                                               [this](const Verdict& all, bool is_final) {
                                                 verdict = all;
                                                 final = is_final;
                                               },
                                           .begin = [this] { ++begun; },
                                           .note = [this](const std::string& text) { notes.push_back(text); },
                                           .warn = [this](const std::string& text) { warnings.push_back(text); }});
    }
    return *observer_;
  }
  JobEvents& others() {
    (void)observer();
    return *job.events;
  }

  static FailureRecord failure(int rank) {
    FailureRecord record;
    record.node = "n0";
    record.rank = rank;
    record.ending = FailureRecord::Ending::kExited;
    record.value = 3;
    record.cause = Cause::kOwnError;
    record.steady_ns = 1;
    return record;
  }
  /// Workers here ended by a failure of rank 0.
  void fail_here() {
    const FailureRecord record = failure(0);
    observer().stopping({Kind::kWorkerFailed}, &record, {0});
    observer().attempt_over({{Kind::kWorkerFailed}, {record}}, false, {}, 0);
  }

  /// What the leader of this job, node 1, says when it leaves.
  StopNotice leaving_leader() {
    start.leader = 1;
    start.leader_name = "n1";
    plan.min_nodes = 1;
    return {{.kind = Kind::kNodeLost,
             .who = "node n1 is lost: its lrun received SIGTERM and left the job; the remaining nodes meet again",
             .node = "node n1",
             .node_rank = 1},
            {}};
  }

  RendezvousPlan plan;
  Membership start = membership_of(3);
  FakeJob job;
  LastStop next;
  int stops = 0;
  RunEnd stopped;
  bool is_victim = false;
  std::optional<Verdict> verdict;
  bool final = false;
  int begun = 0;
  std::vector<std::string> notes;
  std::vector<std::string> warnings;

 private:
  std::optional<JobObserver> observer_;
};

TEST_F(JobObserverTest, AStopHereIsSentToTheOthersWithItsCause) {
  fail_here();
  EXPECT_THAT(job.calls, ElementsAre("stopping", "report"));
  ASSERT_TRUE(job.notice);
  EXPECT_EQ(job.notice->end.node, "n0");
  EXPECT_EQ(job.notice->cause->value, 3);
  EXPECT_TRUE(observer().waits());
  EXPECT_FALSE(verdict) << "the others have not reported";
}

TEST_F(JobObserverTest, TheVerdictIsThatOfAllReports) {
  fail_here();
  others().over(merge_reports({job.reported, job.reported, job.reported}));
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->exit_code, 3);
  EXPECT_EQ(verdict->culprit->rank, 0);
  EXPECT_FALSE(final);
}

TEST_F(JobObserverTest, AReportThatIsMissingAllowsNoFurtherAttempt) {
  fail_here();
  others().over("nonsense");
  EXPECT_TRUE(final);
}

TEST_F(JobObserverTest, AStopElsewhereStopsTheWorkersHere) {
  const FailureRecord cause = failure(2);
  others().stop(to_json(StopNotice{{.kind = Kind::kWorkerFailed, .node = "n2", .node_rank = 2}, cause}));
  EXPECT_EQ(stopped.kind, Kind::kWorkerFailed);
  EXPECT_EQ(stopped.node, "n2");
  EXPECT_FALSE(is_victim);
  observer().stopping(stopped, nullptr, {1});
  EXPECT_EQ(next.cause_rank, 2) << "the cause there is the cause here";
  EXPECT_THAT(job.calls, IsEmpty()) << "it is known there";
}

TEST_F(JobObserverTest, ANoticeThatCannotBeReadIsStillAStop) {
  others().stop("nonsense");
  EXPECT_EQ(stopped.kind, Kind::kWorkerFailed);
  EXPECT_FALSE(stopped.is_ours());
}

TEST_F(JobObserverTest, AVictimElsewhereMayHaveItsCauseHere) {
  FailureRecord cause = failure(2);
  cause.cause = Cause::kPeerLost;
  others().stop(to_json(StopNotice{{.kind = Kind::kWorkerFailed, .node = "n2"}, cause}));
  EXPECT_TRUE(is_victim);
}

TEST_F(JobObserverTest, ALostNodeStopsTheRoundAndIsItsReason) {
  others().lost("n2", "silence for 5s", 7, "");
  EXPECT_EQ(stopped.kind, Kind::kNodeLost);
  EXPECT_THAT(stopped.who, HasSubstr("node n2 is lost: silence for 5s; 2 of 3 nodes are left"));
  EXPECT_EQ(observer().strength().others, 1);
  observer().stopping(stopped, nullptr, {1});
  observer().attempt_over({stopped, {}}, false, {}, 0);
  others().over(merge_reports({job.reported, ""}));
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->end.kind, Kind::kNodeLost);
  EXPECT_FALSE(final) << "others may come";
}

TEST_F(JobObserverTest, ASpareTakesThePlaceOfALostNode) {
  others().lost("n2", "silence", 7, "n9");
  EXPECT_THAT(stopped.who, HasSubstr("node n9, a spare, takes its place"));
}

TEST_F(JobObserverTest, ALossWhileWorkersStopForAnotherReasonIsANote) {
  const FailureRecord record = failure(0);
  observer().stopping({Kind::kWorkerFailed}, &record, {1});
  others().lost("n2", "silence", 7, "");
  EXPECT_THAT(notes, ElementsAre(HasSubstr("node n2 is lost")));
}

TEST_F(JobObserverTest, ALossBetweenTwoRoundsIsANoteOnly) {
  fail_here();
  others().over(merge_reports({job.reported}));
  observer().ready({}, {});
  EXPECT_TRUE(observer().waits_to_begin());
  others().lost("n2", "silence", 7, "");
  EXPECT_THAT(notes, ElementsAre(HasSubstr("node n2 is lost")));
  EXPECT_EQ(stopped.kind, Kind::kSucceeded) << "nothing runs that could be stopped";
}

TEST_F(JobObserverTest, WithoutALeaderThisNodeJudgesAlone) {
  fail_here();
  others().lost("", "connection refused", 7, "");
  EXPECT_TRUE(observer().is_alone());
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->exit_code, 3);
  EXPECT_TRUE(final);
}

TEST_F(JobObserverTest, ALostLeaderStopsTheRoundUntilTheOthersMeetAgain) {
  others().leaderless("the leader is lost", 7);
  EXPECT_EQ(stopped.kind, Kind::kNodeLost);
  EXPECT_FALSE(observer().is_alone());
}

TEST_F(JobObserverTest, ALostLeaderIsCountedOnce) {
  start.leader = 1;
  start.leader_name = "n1";
  others().leaderless("the leader is lost", 7);
  EXPECT_EQ(observer().strength().others, 1);
  others().lost("n1", "silence for 5s", 7, "");
  EXPECT_EQ(observer().strength().others, 1);
  others().lost("n2", "silence for 5s", 7, "");
  EXPECT_EQ(observer().strength().others, 0);
}

TEST_F(JobObserverTest, ANewNodeStopsARoundThatRuns) {
  others().resized("n3", "node n3 has joined");
  EXPECT_EQ(stopped.kind, Kind::kNodeJoined);
  fail_here();
  stopped = {};
  others().resized("n4", "node n4 has joined");
  EXPECT_EQ(stopped.kind, Kind::kSucceeded) << "it is part of the next round in any case";
}

TEST_F(JobObserverTest, ARoundBeginsWhenThisNodeIsReady) {
  others().begun(membership_of(3, 1, 1));
  EXPECT_EQ(begun, 0) << "the workers of the last round run";
  fail_here();
  others().over(merge_reports({job.reported}));
  observer().ready({.used = 1, .in_a_row = 1, .last = {}}, {});
  EXPECT_EQ(job.calls.back(), "ready 1");
  others().begun(membership_of(2, 1, 1));
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(observer().membership().num_nodes, 2);
  others().lost("n1", "silence", 7, "");
  EXPECT_THAT(stopped.who, HasSubstr("1 of 3 nodes is left")) << "losses are counted anew in each round";
}

TEST_F(JobObserverTest, ANodeTellsTheOthersTheNoticeForWhichItLeaves) {
  plan.min_nodes = 2;
  observer().stopping({.kind = Kind::kNotice, .who = "notice from AWS: stop"}, nullptr, {1});
  EXPECT_THAT(job.calls, ElementsAre("drop out: its lrun got a notice from AWS: stop and left the job"));
}

TEST_F(JobObserverTest, ANodeThatIsTakenAwayLeavesWhereTheOthersCanDoWithoutIt) {
  plan.min_nodes = 2;
  const RunEnd term{.kind = Kind::kInterrupted, .signal_number = SIGTERM};
  observer().stopping(term, nullptr, {1});
  EXPECT_THAT(job.calls, ElementsAre("drop out: its lrun received SIGTERM and left the job"));
  EXPECT_THAT(notes, ElementsAre("this node leaves the job; 2 of 2:3 nodes go on"));
  EXPECT_TRUE(observer().is_alone());
}

TEST_F(JobObserverTest, ALeaderLeavesItsJobWhenItsWorkersAreGone) {
  plan.min_nodes = 2;
  job.is_dispensable = false;
  job.successors = true;
  observer().stopping({Kind::kGuardDied}, nullptr, {1});
  EXPECT_THAT(job.calls, IsEmpty()) << "the others begin at once";
  observer().attempt_over({{Kind::kGuardDied}, {}}, true, {}, 0);
  EXPECT_THAT(job.calls, ElementsAre("abandon"));
  EXPECT_TRUE(final);
}

TEST_F(JobObserverTest, ALeaderThatIsTakenAwayStopsTheOthersBeforeItLeaves) {
  plan.min_nodes = 2;
  job.is_dispensable = false;
  job.successors = true;
  observer().stopping({.kind = Kind::kNotice, .who = "notice from AWS: stop"}, nullptr, {1});
  EXPECT_THAT(job.calls, ElementsAre("stopping")) << "the workers of all nodes save together";
  observer().attempt_over({{Kind::kNotice}, {}}, true, {}, 0);
  EXPECT_THAT(job.calls, ElementsAre("stopping", "abandon"));
}

TEST_F(JobObserverTest, ALeaderWithoutWorkersLeavesAtOnce) {
  plan.min_nodes = 2;
  job.is_dispensable = false;
  job.successors = true;
  fail_here();
  others().over(merge_reports({job.reported}));
  job.calls.clear();
  observer().stopping({.kind = Kind::kNotice, .who = "notice from AWS: stop"}, nullptr, {0});
  EXPECT_THAT(job.calls, IsEmpty());
  observer().leave("");
  EXPECT_THAT(job.calls, ElementsAre("abandon", HasSubstr("leave: ")));
}

TEST_F(JobObserverTest, ALeaderThatLeavesStopsTheWorkersHere) {
  const std::string notice = to_json(leaving_leader());
  others().stop(notice);
  EXPECT_EQ(stopped.kind, Kind::kNodeLost);
  EXPECT_THAT(stopped.who, HasSubstr("the remaining nodes meet again"));
  EXPECT_EQ(observer().strength().others, 1) << "of three, the leader does not count any more";
  others().leaderless("the leader on node n0 is lost: its launcher ended", 7);
  EXPECT_EQ(observer().strength().others, 1) << "nor twice";
}

TEST_F(JobObserverTest, ALeaderThatLeavesBetweenTwoAttemptsIsANote) {
  const std::string notice = to_json(leaving_leader());
  fail_here();
  others().over(merge_reports({job.reported}));
  others().stop(notice);
  EXPECT_EQ(stops, 0) << "the next attempt is without it";
  EXPECT_THAT(notes, ElementsAre(HasSubstr("left the job")));
}

TEST_F(JobObserverTest, ANodeThatTheJobNeedsStopsItWhenItCannotStart) {
  observer().start_failed(failure(0));
  EXPECT_THAT(job.calls, ElementsAre("stopping", "report", HasSubstr("leave: ")));
}

TEST_F(JobObserverTest, ANodeThatTheJobDoesNotNeedLeavesWhenItCannotStart) {
  plan.min_nodes = 2;
  observer().start_failed(failure(0));
  EXPECT_THAT(job.calls, ElementsAre(HasSubstr("drop out: its workers could not be started")));
}

TEST_F(JobObserverTest, AUserWhoWantsTheEndWhileTheOthersRunStopsThem) {
  fail_here();
  observer().stop_others({.kind = Kind::kRequested});
  EXPECT_EQ(job.calls.back(), "stopping");
  others().over(merge_reports({job.reported}));
  EXPECT_TRUE(final);
}

TEST_F(JobObserverTest, TheJobThatIsOverStopsThisNode) {
  others().ended("no other node has come in 1m", true);
  EXPECT_TRUE(observer().is_alone());
  EXPECT_EQ(stopped.who, "no other node has come in 1m");
}

TEST_F(JobObserverTest, AfterItsEndNothingIsHeard) {
  observer().leave("");
  EXPECT_EQ(job.calls.back(), "leave: ");
  others().lost("n2", "silence", 7, "");
  others().leaderless("x", 7);
  others().ended("x", true);
  EXPECT_EQ(stopped.kind, Kind::kSucceeded);
  EXPECT_THAT(notes, IsEmpty());
}

TEST_F(JobObserverTest, EveryLauncherOfARankStopsForAllOthers) {
  plan.of_ranks = true;
  observer().stopping({Kind::kRequested}, nullptr, {1});
  EXPECT_EQ(next.to_stop, (RunningWorkers{3, 1}));
}

TEST_F(JobObserverTest, AFailureStopsTheWorkersOfAllNodes) {
  const FailureRecord record = failure(0);
  observer().stopping({Kind::kWorkerFailed}, &record, {1});
  EXPECT_EQ(next.to_stop, (RunningWorkers{3, 3}));
}

TEST_F(JobObserverTest, TheNextNodeSpeaksWhereTheFirstIsGone) {
  EXPECT_TRUE(observer().speaks()) << "node rank 0";
  const auto speaks_after = [this](int node_rank, const std::function<void(JobEvents&)>& event) {
    FakeJob fake;
    Membership membership = membership_of(3);
    membership.self.node_rank = node_rank;
    membership.leader = 0;
    JobObserver observer(fake, membership, plan, next,
                         {.stop = [](const RunEnd&, bool) {}, .note = [](const std::string&) {}});
    EXPECT_FALSE(observer.speaks());
    event(*fake.events);
    return observer.speaks();
  };
  const auto is_lost = [](JobEvents& events) { events.lost("n0", "silence", 7, ""); };
  const auto other_is_lost = [](JobEvents& events) { events.lost("n2", "silence", 7, ""); };
  const auto has_no_leader = [](JobEvents& events) { events.leaderless("silence", 7); };
  EXPECT_TRUE(speaks_after(1, is_lost));
  EXPECT_TRUE(speaks_after(1, has_no_leader));
  EXPECT_FALSE(speaks_after(2, is_lost));
  EXPECT_FALSE(speaks_after(1, other_is_lost));
  EXPECT_FALSE(speaks_after(1, [](JobEvents& events) { events.ended("not enough nodes", true); }))
      << "the first was told, too";
  EXPECT_TRUE(speaks_after(1, [](JobEvents& events) { events.ended("not let in", false); }));
}

TEST_F(JobObserverTest, ALostNodeStopsThoseOfThisNodeAsFarAsItKnows) {
  observer().stopping({.kind = Kind::kNodeLost}, nullptr, {2});
  EXPECT_EQ(next.to_stop, (RunningWorkers{2, 1}));
}

TEST_F(JobObserverTest, WaitingIsToldEverMoreSeldom) {
  for (int i = 0; i < 5; ++i) others().waiting("2 of 3 are here");
  EXPECT_EQ(notes.size(), 3U) << "the first, second and fourth time";
  others().rejected("node x was not let in");
  EXPECT_THAT(warnings, ElementsAre("node x was not let in"));
}

}  // namespace
}  // namespace lrun::launcher
