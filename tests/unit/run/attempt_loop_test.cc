#include "run/attempt_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "process/exit_codes.h"
#include "support/fake_job.h"
#include "unit/run/shell_run.h"

namespace lrun::launcher {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// The loop of attempts in a run of this node alone.
class AttemptLoopTest : public ShellRun {
 protected:
  [[nodiscard]] LaunchPlan restarting(const std::string& script, int most, int workers = 1) const {
    LaunchPlan plan = plan_for(script, workers);
    plan.max_restarts.value = most;
    plan.personality.repeats_identical = true;
    return plan;
  }

  EventLoop::Timer signal_;
};

TEST_F(AttemptLoopTest, AFailedAttemptIsFollowedByAnother) {
  const Verdict verdict = run(restarting("test $TORCHELASTIC_RESTART_COUNT = 2 || exit 7", 3));
  EXPECT_EQ(verdict.exit_code, 0);
  EXPECT_EQ(verdict.restarts, 2);
  EXPECT_THAT(sink.text(), HasSubstr("restart 1 of 3"));
  EXPECT_THAT(sink.text(), HasSubstr("restart 2 of 3"));
  EXPECT_THAT(events(), Contains("restarting").Times(2));
  EXPECT_THAT(events(), Contains("run_started").Times(1));
  EXPECT_THAT(events(), Contains("attempt_started").Times(2));
  EXPECT_EQ(result().at("restarts"), 2);
}

TEST_F(AttemptLoopTest, EachAttemptHasFilesOfItsOwn) {
  run(restarting("echo attempt $TORCHELASTIC_RESTART_COUNT; exit 1", 1));
  EXPECT_EQ(content_of(run_folder() / "attempt_0/0/stdout.log"), "attempt 0\n");
  EXPECT_EQ(content_of(run_folder() / "attempt_1/0/stdout.log"), "attempt 1\n");
}

TEST_F(AttemptLoopTest, TheRunEndsWhenNoRestartIsLeft) {
  const Verdict verdict = run(restarting("exit 7", 1));
  EXPECT_EQ(verdict.exit_code, 7);
  EXPECT_EQ(verdict.restarts, 1);
  EXPECT_THAT(sink.text(), HasSubstr("as often as allowed"));
}

TEST_F(AttemptLoopTest, WhatFailsTwiceInTheSameWayWhileItStartsIsNotTriedAgain) {
  LaunchPlan plan = restarting("echo 'ImportError: no such module' >&2; exit 1", 5);
  plan.personality.repeats_identical = false;
  const Verdict verdict = run(plan);
  EXPECT_EQ(verdict.restarts, 1);
  EXPECT_EQ(verdict.exit_code, 1);
}

TEST_F(AttemptLoopTest, ASignalWhileTheNextAttemptWaitsForItsTimeEndsTheRun) {
  LaunchPlan plan = restarting("exit 7", 5);
  plan.restart_backoff.value = std::chrono::minutes(5);
  sink.printed = [this](const std::string& text) {
    if (text.find("restart 2 of 5") == std::string::npos) return;  // the first one follows at once
    signal_ = loop.after(Duration(0), [this] { forward(SIGTERM); });
  };
  const Verdict verdict = run(plan);
  EXPECT_EQ(verdict.end.kind, RunEnd::Kind::kInterrupted);
  EXPECT_EQ(verdict.die_of_signal, SIGTERM);
  EXPECT_EQ(verdict.restarts, 1);
}

TEST_F(AttemptLoopTest, NoAttemptFollowsWhereTheUserWantsTheEndMeanwhile) {
  when_printed("told to end", [this] { forward(SIGTERM); });
  const Verdict verdict =
      run(restarting("if [ $RANK = 0 ]; then sleep 0.1; exit 7; fi; trap 'echo told to end; sleep 0.1; exit 0' TERM; "
                     "while :; do sleep 0.01; done",
                     3, 2));
  EXPECT_EQ(verdict.exit_code, 7) << "the failure came first";
  EXPECT_EQ(verdict.restarts, 0);
}

TEST_F(AttemptLoopTest, AProgramThatIsGoneAtARestartEndsTheRun) {
  const std::string program = state.script("vanishes", "#!/bin/sh\nrm \"$0\"; exit 7\n");
  LaunchPlan plan = restarting("", 3);
  plan.argv = {program};
  const Verdict verdict = run(plan);
  EXPECT_EQ(verdict.end.kind, RunEnd::Kind::kStartFailed);
  EXPECT_EQ(verdict.exit_code, kExitNotFound);
  EXPECT_EQ(result().at("exit_code"), kExitNotFound);
}

TEST_F(AttemptLoopTest, ARestartThatCannotLogDoesNotHideHowTheLastAttemptEnded) {
  // Each worker writes its own files, so that there can be no attempt without a folder for them.
  const std::string logs_folder = (state / "logs").string();
  LaunchPlan plan = restarting("rm -r " + logs_folder + "; : > " + logs_folder + "; exit 7", 3);
  plan.log_dir.value = logs_folder;
  plan.output.redirects.all = 3;
  const Verdict verdict = run(plan);
  EXPECT_EQ(verdict.exit_code, 7);
  EXPECT_THAT(sink.text(), HasSubstr("no further attempt can start"));
}

TEST_F(AttemptLoopTest, TheFolderOfARunThatSomebodyRemovesIsMadeAgain) {
  // The launcher may make a file in it while it is being removed.
  const std::string remove =
      "while [ -e " + run_folder().string() + " ]; do rm -rf " + run_folder().string() + "; done";
  const Verdict verdict = run(restarting("if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then " + remove + "; exit 7; fi", 1));
  EXPECT_EQ(verdict.exit_code, 0);
  EXPECT_EQ(result().at("exit_code"), 0);
  EXPECT_THAT(events(), Contains("run_started").Times(1)) << "the new record knows of the run";
}

TEST_F(AttemptLoopTest, TheStoreIsEmptyInEachAttemptAndKeepsItsPort) {
  run(restarting("echo port $MASTER_PORT; exit 7", 1));
  const std::string first = content_of(run_folder() / "attempt_0/0/stdout.log");
  EXPECT_THAT(first, HasSubstr("port "));
  EXPECT_EQ(content_of(run_folder() / "attempt_1/0/stdout.log"), first);
}

TEST_F(AttemptLoopTest, WorkersOfAHangAreStartedAgainWhereThatIsAskedFor) {
  LaunchPlan plan = restarting("test $TORCHELASTIC_RESTART_COUNT = 1 || exec sleep 1000", 1);
  plan.hang_timeout.value = Duration(100);
  plan.on_hang = OnHang::kRestart;
  const Verdict verdict = run(plan);
  EXPECT_EQ(verdict.exit_code, 0);
  EXPECT_EQ(verdict.restarts, 1);
  EXPECT_THAT(sink.text(), HasSubstr("no progress for"));
  EXPECT_EQ(looks, 1);
}

/// The same in a job of two nodes, of which the test is the other one.
class AttemptLoopInJobTest : public AttemptLoopTest {
 protected:
  AttemptLoopInJobTest() {
    job = &others;
    membership = membership_of(2);
  }
  ~AttemptLoopInJobTest() override { launcher.reset(); }  // it uses `others`

  [[nodiscard]] LaunchPlan in_job(const std::string& script, int most_restarts = 0) const {
    LaunchPlan plan = restarting(script, most_restarts);
    plan.num_nodes = plan.world_size = 2;
    plan.rendezvous.emplace();
    plan.rendezvous->host = "n0";
    plan.rendezvous->min_nodes = plan.rendezvous->max_nodes = 2;
    plan.rendezvous->replacement = Duration(0);
    return plan;
  }

  /// Calls `act` by the loop whenever this node has sent something.
  void when_sent(const std::function<void(const std::string& call)>& act) {
    others.called = [this, act](const std::string& call) {
      replies_.push_back(loop.after(Duration(0), [act, call] { act(call); }));
    };
  }

  FakeJob others;

 private:
  std::vector<EventLoop::Timer> replies_;
};

TEST_F(AttemptLoopInJobTest, TheVerdictComesWhenAllNodesHaveReported) {
  when_sent([this](const std::string& call) {
    if (call == "report") others.events->over(merge_reports({others.reported, others.reported}));
  });
  const Verdict verdict = run(in_job("exit 0"));
  EXPECT_EQ(verdict.exit_code, 0);
  EXPECT_THAT(others.calls, ElementsAre("report", "leave: "));
}

TEST_F(AttemptLoopInJobTest, AFailureElsewhereIsTheVerdictHere) {
  FailureRecord cause;
  cause.node = "n1";
  cause.node_rank = cause.rank = 1;
  cause.value = 9;
  cause.cause = Cause::kOwnError;
  cause.steady_ns = 1;
  const RunEnd elsewhere{.kind = RunEnd::Kind::kWorkerFailed, .node = "n1", .node_rank = 1};
  when_printed("ready", [&] { others.events->stop(to_json(StopNotice{elsewhere, cause})); });
  when_sent([&](const std::string& call) {
    if (call != "report") return;
    const JobReport theirs = report_of("n1", 1, {.kind = RunEnd::Kind::kWorkerFailed}, 1, {cause}, {});
    others.events->over(merge_reports({others.reported, to_json(theirs)}));
  });
  const Verdict verdict = run(in_job(kObeysTerm));
  EXPECT_EQ(verdict.exit_code, 9);
  EXPECT_EQ(verdict.culprit->node, "n1");
}

TEST_F(AttemptLoopInJobTest, TheNextAttemptBeginsWithTheRound) {
  when_sent([this](const std::string& call) {
    if (call == "report") others.events->over(merge_reports({others.reported, others.reported}));
    if (call == "ready 1") others.events->begun(membership_of(2, 1, 1));
  });
  const Verdict verdict = run(in_job("test $TORCHELASTIC_RESTART_COUNT = 1 || exit 7", 1));
  EXPECT_EQ(verdict.exit_code, 0);
  EXPECT_EQ(verdict.restarts, 1);
  EXPECT_EQ(launcher->round(), 1);
}

TEST_F(AttemptLoopInJobTest, ALostNodeIsNoRestart) {
  when_printed("ready", [this] { others.events->lost("n1", "silence for 5s", 1, ""); });
  int reports = 0;
  when_sent([&](const std::string& call) {
    if (call == "report") {
      ++reports;
      others.events->over(merge_reports({others.reported, reports == 1 ? std::string() : others.reported}));
    }
    if (call == "ready 0") others.events->begun(membership_of(1, 1, 0));
  });
  LaunchPlan plan =
      in_job("if [ $WORLD_SIZE = 2 ]; then trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done; fi");
  plan.rendezvous->min_nodes = 1;
  const Verdict verdict = run(plan);
  EXPECT_EQ(verdict.exit_code, 0);
  EXPECT_EQ(verdict.restarts, 0);
  EXPECT_THAT(sink.text(), HasSubstr("all workers start again on 1 of 1:2 nodes: world size 1"));
  EXPECT_TRUE(fs::exists(run_folder() / plan.nodes.front().name / "attempt_0"));
}

TEST_F(AttemptLoopInJobTest, ASignalWhileALossIsJudgedIsTheReasonOfTheEnd) {
  when_printed("ready", [this] { others.events->lost("n1", "silence for 5s", 1, ""); });
  when_sent([&](const std::string& call) {
    if (call != "report") return;
    forward(SIGTERM);
    others.events->over(merge_reports({others.reported, std::string()}));
  });
  LaunchPlan plan = in_job("trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done");
  plan.rendezvous->min_nodes = 1;
  const Verdict verdict = run(plan);
  EXPECT_EQ(verdict.end.kind, RunEnd::Kind::kInterrupted);
  EXPECT_EQ(verdict.die_of_signal, SIGTERM);
}

TEST_F(AttemptLoopInJobTest, ASignalWhileTheOthersAreWaitedForEndsThisNode) {
  int reports = 0;
  when_sent([&](const std::string& call) {
    if (call != "report" || ++reports > 1) return;
    forward(SIGTERM);
    EXPECT_EQ(others.calls.back(), "stopping") << "the others are to end, too";
    others.events->over(merge_reports({others.reported, others.reported}));
  });
  const Verdict verdict = run(in_job("exit 0"));
  EXPECT_EQ(verdict.exit_code, 0) << "all workers had succeeded";
}

/// A node that waits for the others gets SIGTERM and a notice, in each order.
TEST_F(AttemptLoopInJobTest, ANoticeIsNotImpatient) {
  for (const bool is_first : {true, false}) {
    const fs::path going = state.path() / (is_first ? "first" : "second");
    notice.emplace(
        NoticeMonitor::Facts{.loop = loop,
                             .place = going,
                             .of = "a test",
                             .look = [looker = NoticeLooker({NoticeSource::Kind::kFile,
                                                             going})]() mutable { return looker.look(steady_now()); },
                             .pause = Duration(2),
                             .patience = Duration(60'000)},
        sink);
    EventLoop::Timer wait;
    bool has_come = false;
    const std::function<void()> wait_for_notice = [&] {
      if (!std::exchange(has_come, !notice->notice().empty())) {  // then the launcher is told at once
        wait = loop.after(Duration(2), wait_for_notice);
        return;
      }
      EXPECT_EQ(others.calls.back(), "stopping") << "the others are to end, too";
      if (is_first) forward(SIGTERM);
      others.events->over(merge_reports({others.reported, others.reported}));
    };
    int reports = 0;
    when_sent([&](const std::string& call) {
      if (call != "report" || ++reports > 1) return;
      if (!is_first) forward(SIGTERM);
      std::ofstream(going) << "line\n";
      wait = loop.after(Duration(2), wait_for_notice);
    });
    const Verdict verdict = run(in_job("exit 0"));
    EXPECT_EQ(verdict.exit_code, 0) << "all workers had succeeded";
    launcher.reset();
  }
}

}  // namespace
}  // namespace lrun::launcher
