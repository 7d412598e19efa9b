#include "run/node_launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "process/exit_codes.h"
#include "unit/run/shell_run.h"

namespace lrun::launcher {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class NodeLauncherTest : public ShellRun {
 protected:
  /// Of the control socket.
  std::string answer(std::string_view command) {
    std::string line;
    launcher->answer(command, [&line](const std::string& said) { line = said; });
    return line;
  }
};

TEST_F(NodeLauncherTest, ARunThatSucceedsSaysNothingAndLeavesItsResult) {
  const Verdict verdict = run(plan_for("exit 0", 2));
  EXPECT_EQ(verdict.exit_code, 0);
  EXPECT_EQ(verdict.end.kind, RunEnd::Kind::kSucceeded);
  EXPECT_EQ(sink.text(), "");
  EXPECT_EQ(result().at("exit_code"), 0);
  EXPECT_EQ(result().at("reason"), "succeeded");
  EXPECT_THAT(events(), ElementsAre("run_started", "worker_ended", "worker_ended", "run_ended"));
  EXPECT_TRUE(launcher->left_nothing());
}

TEST_F(NodeLauncherTest, AFailureIsToldAsSoonAsItIsSeenAndTheVerdictNamesTheProcess) {
  const Verdict verdict =
      run(plan_for("if [ $RANK = 1 ]; then echo 'ValueError: bad batch' >&2; exit 3; fi; exec sleep 1000", 2));
  EXPECT_EQ(verdict.exit_code, 3);
  ASSERT_TRUE(verdict.culprit);
  EXPECT_EQ(verdict.culprit->rank, 1);
  EXPECT_THAT(sink.entries.front().text, HasSubstr("rank 1 exited with code 3"));
  EXPECT_THAT(sink.entries.front().text, HasSubstr("stopping 1"));
  EXPECT_THAT(sink.entries.back().text, HasSubstr("rank 1 ran for "));
  for (const RecordingSink::Entry& entry : sink.entries) EXPECT_TRUE(entry.of_job) << entry.text;
  EXPECT_EQ(result().at("exit_code"), 3);
  EXPECT_EQ(result().at("culprit").at("rank"), 1);
  EXPECT_THAT(std::string(result().at("text")), HasSubstr("ValueError: bad batch"));
  EXPECT_THAT(events(), Contains("stopping"));
}

TEST_F(NodeLauncherTest, AProgramThatIsNotThereIsCode127AndLeavesNoRecord) {
  LaunchPlan plan = plan_for("");
  plan.argv = {"/nonexistent/program"};
  const Verdict verdict = run(plan);
  EXPECT_EQ(verdict.exit_code, kExitNotFound);
  EXPECT_EQ(verdict.end.kind, RunEnd::Kind::kStartFailed);
  EXPECT_THAT(sink.text(), HasSubstr("/nonexistent/program"));
  EXPECT_FALSE(fs::exists(run_folder()));
}

TEST_F(NodeLauncherTest, TheLimitOfTheRunStopsIt) {
  LaunchPlan plan = plan_for(kObeysTerm);
  plan.timeout.value = Duration(100);
  const Verdict verdict = run(plan);
  EXPECT_EQ(verdict.exit_code, kExitTimedOut);
  EXPECT_EQ(verdict.end.kind, RunEnd::Kind::kTimedOut);
  EXPECT_EQ(verdict.end.limit_ms, 100);
  EXPECT_EQ(looks, 1) << "where workers are is looked at before a limit stops them";
}

TEST_F(NodeLauncherTest, TheLimitOfTheStartNamesTheRanksThatDidNotConnect) {
  LaunchPlan plan = plan_for(kObeysTerm, 2);
  plan.start_timeout.value = Duration(100);
  const Verdict verdict = run(plan);
  EXPECT_EQ(verdict.exit_code, kExitTimedOut);
  EXPECT_EQ(verdict.end.kind, RunEnd::Kind::kStartTimedOut);
  EXPECT_EQ(verdict.end.who, "ranks 0-1");
}

TEST_F(NodeLauncherTest, ASignalIsTheReasonAndLrunDiesOfIt) {
  when_printed("ready", [this] { forward(SIGTERM); });
  const Verdict verdict = run(plan_for(kObeysTerm));
  EXPECT_EQ(verdict.end.kind, RunEnd::Kind::kInterrupted);
  EXPECT_EQ(verdict.die_of_signal, SIGTERM);
  EXPECT_EQ(verdict.exit_code, exit_code_of_signal(SIGTERM));
  EXPECT_EQ(result().at("reason"), "interrupted");
}

TEST_F(NodeLauncherTest, TheOtherCopyOfASignalHurriesNothing) {
  LaunchPlan plan = plan_for(kIgnoresSignals);
  plan.grace.value = Duration(100);
  when_printed("ready", [this] {
    forward(SIGINT);
    send(SIGINT);
  });
  const Verdict verdict = run(plan);
  EXPECT_TRUE(verdict.end.grace_expired) << "the second one would have killed at once";
}

TEST_F(NodeLauncherTest, ASecondSignalKillsAtOnce) {
  when_printed("ready", [this] {
    forward(SIGINT);
    forward(SIGINT);
  });
  const Verdict verdict = run(plan_for(kIgnoresSignals));
  EXPECT_FALSE(verdict.end.grace_expired);
  EXPECT_THAT(verdict.killed, ElementsAre(0));
}

TEST_F(NodeLauncherTest, ATermThatTheManagerRepeatsHurriesNothing) {
  environment.set("SLURM_JOB_ID", "7");
  environment.set("SLURM_STEP_ID", "0");
  LaunchPlan plan = plan_for(kIgnoresSignals);
  plan.grace.value = Duration(100);
  when_printed("ready", [this] {
    forward(SIGTERM);
    forward(SIGTERM);
  });
  EXPECT_TRUE(run(plan).end.grace_expired);
}

TEST_F(NodeLauncherTest, TheControlSocketStopsTheRunAndTellsItsState) {
  nlohmann::json status;
  std::string stopping;
  bool socket_was_there = false;
  when_printed("ready", [&] {
    socket_was_there = fs::exists(run_folder() / "control.sock");
    status = nlohmann::json::parse(answer("status"));
    EXPECT_THAT(answer("dance"), HasSubstr("unknown command"));
    stopping = answer("stop");
  });
  const Verdict verdict = run(plan_for(kObeysTerm));
  EXPECT_TRUE(socket_was_there);
  EXPECT_FALSE(fs::exists(run_folder() / "control.sock")) << "nobody answers there any more";
  EXPECT_EQ(status.at("run_id"), "demo");
  EXPECT_EQ(status.at("pid"), ::getppid()) << "the guard's, which a signal reaches";
  EXPECT_EQ(status.at("phase"), "running");
  EXPECT_THAT(stopping, HasSubstr("stopping"));
  EXPECT_EQ(verdict.end.kind, RunEnd::Kind::kRequested);
}

TEST_F(NodeLauncherTest, TheStatusCountsByTheClockOfTheRun) {
  SteadyTime now = steady_now();
  clock.steady = [&] { return now; };
  clock.wall = [] { return WallTime(std::chrono::seconds(1'000)); };
  nlohmann::json status;
  when_printed("ready", [&] {
    now += std::chrono::minutes(5);
    status = nlohmann::json::parse(answer("status"));
    forward(SIGTERM);
  });
  run(plan_for(kObeysTerm));
  EXPECT_EQ(status.at("started_ms"), 1'000'000);
  EXPECT_EQ(status.at("running_ms"), 300'000);
}

TEST_F(NodeLauncherTest, AClosedConsoleEndsTheRun) {
  when_printed("ready", [this] { close_console(); });
  const Verdict verdict = run(plan_for("trap 'exit 0' TERM; while :; do echo ready; sleep 0.01; done"));
  EXPECT_EQ(verdict.end.kind, RunEnd::Kind::kConsoleClosed);
}

TEST_F(NodeLauncherTest, WhatAWorkerLeftBehindIsEnded) {
  const Verdict verdict = run(plan_for("setsid sleep 1000 > /dev/null 2>&1 & echo left $!; exit 0"));
  EXPECT_EQ(verdict.exit_code, 0);
  EXPECT_TRUE(launcher->left_nothing());
  const std::size_t at = printed.find("left ");
  ASSERT_NE(at, std::string::npos) << printed;
  const pid_t pid = std::stoi(printed.substr(at + 5));
  EXPECT_EQ(::kill(pid, 0), -1) << "it still lives";
}

TEST_F(NodeLauncherTest, OutputGoesToTheConsoleAndToALogFile) {
  run(plan_for("echo hello", 2));
  EXPECT_THAT(printed, HasSubstr("[1] hello\n"));
  EXPECT_EQ(content_of(run_folder() / "attempt_0/1/stdout.log"), "hello\n");
}

TEST_F(NodeLauncherTest, ARecordThatCannotBeKeptIsOneWarning) {
  environment.set("LRUN_STATE", "/proc/nowhere");
  const Verdict verdict = run(plan_for("exit 0"));
  EXPECT_EQ(verdict.exit_code, 0);
  ASSERT_EQ(sink.entries.size(), 1U) << sink.text();
  EXPECT_THAT(sink.text(), HasSubstr("LRUN_STATE"));
}

TEST_F(NodeLauncherTest, ASignalAfterTheEndDoesNotWaitForAConsoleThatTakesNothing) {
  // The pipe is full, and nobody reads it while the run ends.
  LaunchPlan plan = plan_for("head -c 300000 /dev/zero | tr '\\0' x; exit 1");
  bool ended = false;
  stop_reading_console();
  const EventLoop::Timer watch = loop.after(Duration(300), [&] {
    ended = answer("status").find("over") != std::string::npos;
    forward(SIGINT);
    forward(SIGINT);
  });
  const Verdict verdict = run(plan);
  EXPECT_EQ(verdict.exit_code, 1) << "it had ended before the signal";
  EXPECT_TRUE(ended);
}

TEST_F(NodeLauncherTest, TheDeathOfTheGuardKillsAtOnce) {
  guard.emplace(RunGuardOptions{}, 1);  // not our parent: as if the guard had died, and init adopted us
  when_printed("ready", [this] { launcher->signal_received({forwarded_signal(), ::getpid(), 0}); });
  const Verdict verdict = run(plan_for(kIgnoresSignals));
  EXPECT_EQ(verdict.end.kind, RunEnd::Kind::kGuardDied);
  EXPECT_TRUE(launcher->left_nothing());
}

TEST_F(NodeLauncherTest, TorchrunsSummaryTakesThePlaceOfTheVerdict) {
  LaunchPlan plan = plan_for("exit 5");
  plan.personality.failure = Personality::Failure::kTorchrunSummary;
  run(plan);
  EXPECT_THAT(sink.text(), HasSubstr("exitcode  : 5"));
  EXPECT_TRUE(fs::exists(run_folder() / "attempt_0/0")) << "a worker may leave its error file there";
}

}  // namespace
}  // namespace lrun::launcher
