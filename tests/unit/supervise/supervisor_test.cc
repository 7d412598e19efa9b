#include "supervise/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>

#include "unit/supervise/supervised_shells.h"

namespace lrun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SupervisorTest : public SupervisedShells {
 protected:
  /// Of a worker that TERM reaches, and ends well, before lrun gets its own.
  int stop_signal_of_early_end() {
    Supervisor& supervisor =
        supervise({"trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done", "echo ready; exec sleep 1000"});
    run_until_ready(2);
    ::kill(group.workers()[0].process.pid(), SIGTERM);
    run_until([&] { return !supervisor.outcome().records.empty(); });
    supervisor.handle(SignalArrived{SIGTERM});
    run_until_finished();
    EXPECT_EQ(supervisor.outcome().records.back().stop_signal, SIGTERM);
    EXPECT_TRUE(supervisor.outcome().records.front().success());
    return supervisor.outcome().records.front().stop_signal;
  }
};

constexpr const char* kObeys = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done";
/// Fails when the test sends HUP to it.
constexpr const char* kFails = "trap 'exit 3' HUP; echo ready; while :; do sleep 0.01; done";
constexpr const char* kIgnoresTerm = "trap '' TERM INT; echo ready; while :; do sleep 0.01; done";
constexpr const char* kSleeps = "echo ready; exec sleep 1000";

TEST_F(SupervisorTest, FinishesOnceAllWorkersHaveEnded) {
  Supervisor& supervisor = supervise({"exit 0", "exit 0"});
  run_until_finished();
  const RunOutcome outcome = supervisor.outcome();
  EXPECT_EQ(outcome.end.kind, RunEnd::Kind::kSucceeded);
  ASSERT_EQ(outcome.records.size(), 2U);
  EXPECT_TRUE(outcome.records[0].success());
  EXPECT_EQ(outcome.records[0].node, "here");
  EXPECT_EQ(observer.calls.size(), 2U) << "no stop of a run that succeeded";
}

TEST_F(SupervisorTest, AFailureStopsTheOthersAndIsTheirCause) {
  Supervisor& supervisor = supervise({kObeys, kFails, kObeys});
  run_until_ready(3);
  ::kill(group.workers()[1].process.pid(), SIGHUP);
  run_until_finished();
  const RunOutcome outcome = supervisor.outcome();
  EXPECT_EQ(outcome.end.kind, RunEnd::Kind::kWorkerFailed);
  ASSERT_EQ(outcome.records.size(), 3U);
  EXPECT_EQ(outcome.records.front().rank, 1);
  EXPECT_EQ(outcome.records.front().value, 3);
  EXPECT_EQ(outcome.records.front().stop_signal, 0) << "lrun did not cause this end";
  for (std::size_t i = 1; i < 3; ++i) EXPECT_EQ(outcome.records[i].stop_signal, SIGTERM) << outcome.records[i].rank;
  EXPECT_THAT(observer.calls, ::testing::Contains("stopping 2, cause 1"));
}

TEST_F(SupervisorTest, AWorkerThatIgnoresTheSignalIsKilledAfterTheGrace) {
  facts.grace = Duration(50);
  Supervisor& supervisor = supervise({kIgnoresTerm});
  run_until_ready(1);
  supervisor.handle(StopRequested{});
  run_until_finished();
  const RunOutcome outcome = supervisor.outcome();
  EXPECT_TRUE(outcome.end.grace_expired);
  EXPECT_EQ(outcome.end.kind, RunEnd::Kind::kRequested);
  EXPECT_EQ(outcome.records.at(0).stop_signal, SIGKILL);
  EXPECT_THAT(observer.calls, ElementsAre("stopping 1, cause none", "killing 1", "ended 0"));
}

TEST_F(SupervisorTest, ASecondInterruptKillsAtOnce) {
  Supervisor& supervisor = supervise({kIgnoresTerm});
  run_until_ready(1);
  supervisor.handle(SignalArrived{SIGINT});
  supervisor.handle(SignalArrived{SIGINT});
  run_until_finished();
  EXPECT_EQ(supervisor.outcome().end.signal_number, SIGINT);
  EXPECT_FALSE(supervisor.outcome().end.grace_expired);
  EXPECT_EQ(supervisor.outcome().records.at(0).stop_signal, SIGKILL);
}

TEST_F(SupervisorTest, TheOthersHaveAMomentAfterTheFirstFailure) {
  facts.settle = Duration(20'000);
  Supervisor& supervisor = supervise({"echo ready; exit 1", "echo ready; exit 2"});
  run_until_finished();
  ASSERT_EQ(supervisor.outcome().records.size(), 2U);
  for (const FailureRecord& record : supervisor.outcome().records) EXPECT_EQ(record.stop_signal, 0) << record.rank;
  EXPECT_THAT(observer.calls.at(1), HasSubstr("settling"));
}

TEST_F(SupervisorTest, AWorkerThatEndsWellBeforeTheSignalHasSucceeded) { EXPECT_EQ(stop_signal_of_early_end(), 0); }

TEST_F(SupervisorTest, AWorkerThatTheManagersTermEndedFirstWasAskedToEnd) {
  facts.workers_get_term = true;
  EXPECT_EQ(stop_signal_of_early_end(), SIGTERM);
}

TEST_F(SupervisorTest, SuspendedWorkersStandStillUntilTheyAreResumed) {
  Supervisor& supervisor = supervise({kObeys});
  run_until_ready(1);
  supervisor.handle(SignalArrived{SIGTSTP});
  EXPECT_TRUE(supervisor.state().suspended);
  supervisor.handle(SignalArrived{SIGCONT});
  supervisor.handle(SignalArrived{SIGTERM});
  run_until_finished();
  EXPECT_THAT(observer.calls, ElementsAre("suspended", "resumed", "stopping 1, cause none", "ended 0"));
}

TEST_F(SupervisorTest, ASignalOfTheWorkersOwnIsPassedOnAndExplainsTheirEnd) {
  Supervisor& supervisor = supervise({kSleeps});
  run_until_ready(1);
  supervisor.handle(SignalArrived{SIGUSR1});
  run_until_finished();
  const FailureRecord record = supervisor.outcome().records.at(0);
  EXPECT_EQ(record.value, SIGUSR1);
  EXPECT_EQ(record.stop_signal, 0) << "it was not told to end";
  EXPECT_THAT(record.detail, HasSubstr("lrun"));
}

TEST_F(SupervisorTest, WhereWorkersAreIsLookedAtBeforeALimitStopsThem) {
  int looks = 0;
  facts.look = [&]() -> std::shared_ptr<void> {
    ++looks;
    return std::make_shared<int>(0);
  };
  Supervisor& supervisor = supervise({kObeys});
  run_until_ready(1);
  supervisor.handle(TimeIsOver{{RunEnd::Kind::kTimedOut}});
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(supervisor.state().phase, SupervisionState::Phase::kLooking);
  supervisor.saw_workers({RankPlace{}});
  run_until_finished();
  EXPECT_EQ(supervisor.outcome().places.size(), 1U);
  EXPECT_EQ(supervisor.outcome().end.kind, RunEnd::Kind::kTimedOut);
}

TEST_F(SupervisorTest, WorkersOfAStartInPartsAreStartedByTheLoop) {
  int over = 0;
  Supervisor& supervisor =
      supervise({"exit 0"}, {.left = 2,
                             .more =
                                 [this] {
                                   start_shells(loop, group, logs, {"exit 0"});
                                   return std::optional(3 - static_cast<int>(group.workers().size()));
                                 },
                             .over = [&over] { ++over; }});
  run_until_finished();
  EXPECT_EQ(over, 1);
  EXPECT_EQ(supervisor.outcome().records.size(), 3U);
  EXPECT_EQ(supervisor.outcome().end.kind, RunEnd::Kind::kSucceeded);
}

TEST_F(SupervisorTest, NoWorkerIsStartedInARunThatStops) {
  int over = 0;
  Supervisor& supervisor = supervise({kObeys}, {.left = 1,
                                                .more =
                                                    [] {
                                                      ADD_FAILURE() << "a worker would be started";
                                                      return std::optional(0);
                                                    },
                                                .over = [&over] { ++over; }});
  supervisor.handle(SignalArrived{SIGTERM});
  EXPECT_EQ(over, 1);
  run_until_finished();
  EXPECT_EQ(supervisor.outcome().records.size(), 1U);
}

TEST_F(SupervisorTest, ProcessesThatAWorkerLeftHaveTheRestOfTheGrace) {
  Supervisor& supervisor = supervise({"(trap '' TERM; echo ready; sleep 0.2) & wait"});
  run_until_ready(1);
  supervisor.handle(SignalArrived{SIGTERM});
  run_until_finished();
  EXPECT_EQ(supervisor.outcome().records.size(), 1U);
  EXPECT_FALSE(supervisor.outcome().end.grace_expired) << "it ended within the grace";
  EXPECT_FALSE(group.remains_linger());
}

TEST_F(SupervisorTest, AnotherAttemptBeginsAfterTheBackoff) {
  Supervisor& supervisor = supervise({"exit 1"});
  run_until_finished();
  bool again = false;
  supervisor.back_off(
      Duration(1),
      [&] {
        again = true;
        loop.stop();
      },
      [] { ADD_FAILURE() << "the run was to go on"; });
  run_until([&] { return again; });
}

TEST_F(SupervisorTest, ASignalDuringTheBackoffEndsTheRun) {
  Supervisor& supervisor = supervise({"exit 1"});
  run_until_finished();
  bool over = false;
  supervisor.back_off(
      Duration(20'000), [] { ADD_FAILURE() << "the run was to end"; },
      [&] {
        over = true;
        loop.stop();
      });
  supervisor.handle(SignalArrived{SIGTERM});
  run_until([&] { return over; });
  EXPECT_EQ(supervisor.outcome().end.kind, RunEnd::Kind::kInterrupted);
}

TEST_F(SupervisorTest, NoAttemptFollowsWhereSomebodyWantedTheEndWhileWorkersWereStopped) {
  Supervisor& supervisor = supervise({kFails, kObeys});
  run_until_ready(2);
  ::kill(group.workers()[0].process.pid(), SIGHUP);
  run_until([&] { return supervisor.state().phase == SupervisionState::Phase::kStopping || finished; });
  supervisor.handle(SignalArrived{SIGTERM});
  run_until_finished();
  EXPECT_TRUE(supervisor.state().unwanted);
  EXPECT_EQ(supervisor.outcome().end.kind, RunEnd::Kind::kWorkerFailed) << "the first reason stays";
}

TEST_F(SupervisorTest, AStopElsewhereIsTheReasonHere) {
  Supervisor& supervisor = supervise({kObeys});
  run_until_ready(1);
  supervisor.handle(StoppedElsewhere{{.kind = RunEnd::Kind::kNodeLost, .who = "node b is lost", .node = "b"}});
  run_until_finished();
  EXPECT_EQ(supervisor.outcome().end.node, "b");
  EXPECT_FALSE(supervisor.state().unwanted) << "the job may go on without that node";
}

TEST_F(SupervisorTest, OnlyWorkersThatHaveNotEndedAreWorkers) {
  Supervisor& supervisor = supervise({kObeys});
  run_until_ready(1);
  const pid_t pid = group.workers().front().process.pid();
  EXPECT_TRUE(supervisor.is_worker(pid));
  EXPECT_FALSE(supervisor.is_worker(::getpid()));
  supervisor.handle(SignalArrived{SIGTERM});
  run_until_finished();
  EXPECT_FALSE(supervisor.is_worker(pid));
  EXPECT_FALSE(supervisor.gave_up());
}

}  // namespace
}  // namespace lrun::launcher
