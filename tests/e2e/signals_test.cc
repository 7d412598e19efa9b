#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "process/signal_set.h"
#include "support/lrun_process.h"
#include "support/with_more_time.h"

namespace lrun::test {
namespace {

constexpr const char* kSleeper = "echo ready; exec sleep 1000";
constexpr const char* kIgnoresSignals = "trap '' INT TERM; echo ready; exec sleep 1000";

/// Signals that were sent to a process and not read from its signalfd.
bool has_pending_signals(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("ShdPnd:") && line.find_first_not_of("0\t ", 7) != std::string::npos) return true;
  }
  return false;
}

/// A shell whose child was stopped between vfork and exec waits for it in the kernel.
bool all_stopped(const std::vector<pid_t>& pids) {
  return std::all_of(pids.begin(), pids.end(), [&](pid_t pid) {
    const char state = process_state(pid);
    return state == 'T' || state == 'D';
  });
}

bool all_in_state(const std::vector<pid_t>& pids, char state) {
  return std::all_of(pids.begin(), pids.end(), [&](pid_t pid) { return process_state(pid) == state; });
}

/// As Slurm before a preemption.
TEST(Signals, ATermThatSlurmRepeatsKeepsTheGrace) {
  LrunProcess lrun(
      {"-n", "2", "sh", "-c",
       "trap 'echo got it' TERM; trap 'echo saved; exit 0' USR1; echo ready; while :; do sleep 0.01; done"},
      {.environment = {{"SLURM_JOB_ID", "12"}}});
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready")) << lrun.err();
  lrun.signal(SIGTERM);
  ASSERT_TRUE(lrun.wait_for("[0] got it") && lrun.wait_for("[1] got it")) << lrun.err();
  lrun.signal(SIGTERM);
  ASSERT_TRUE(eventually([&] { return !has_pending_signals(lrun.pid()); }));
  lrun.signal(SIGUSR1);  // is passed on behind it
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM);
  for (const char* const line : {"[0] saved", "[1] saved"}) {
    EXPECT_NE(lrun.out().find(line), std::string::npos) << lrun.out() << lrun.err();
  }
}

class EverySignal : public ::testing::TestWithParam<int> {};

TEST_P(EverySignal, IsPassedOnAndThenLrunDiesOfItToo) {
  LrunProcess lrun({"-n", "2", "sh", "-c",
                    "for s in INT TERM HUP QUIT; do trap \"echo got $s; exit 0\" $s; done; echo ready; "
                    "while :; do sleep 0.01; done"});
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready"));
  lrun.signal(GetParam());
  const LrunEnd end = lrun.wait();
  EXPECT_FALSE(end.exited);
  EXPECT_EQ(end.signal_number, GetParam());
  const std::string got = std::string("got ") + ::sigabbrev_np(GetParam());
  EXPECT_NE(lrun.out().find("[0] " + got), std::string::npos) << lrun.out();
  EXPECT_NE(lrun.out().find("[1] " + got), std::string::npos) << lrun.out();
}

INSTANTIATE_TEST_SUITE_P(Signals, EverySignal, ::testing::Values(SIGINT, SIGTERM, SIGHUP, SIGQUIT),
                         [](const auto& instance) { return std::string(::sigabbrev_np(instance.param)); });

TEST(Signals, CtrlCOnATerminalStopsTheWorkers) {
  LrunProcess lrun({"-n", "2", "sh", "-c", kSleeper}, {.environment = {{"NO_COLOR", "1"}}, .terminal = true});
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready"));
  lrun.type("\x03");
  EXPECT_EQ(lrun.wait().signal_number, SIGINT);
  EXPECT_NE(lrun.err().find("received SIGINT; stopping 2 workers"), std::string::npos) << lrun.err();
}

TEST(Signals, ASecondCtrlCKillsAtOnce) {
  LrunProcess lrun({"-n", "2", "--grace", "1000s", "sh", "-c", kIgnoresSignals},
                   {.environment = {{"NO_COLOR", "1"}}, .terminal = true});
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready"));
  lrun.type("\x03");
  ASSERT_TRUE(lrun.wait_for("Ctrl-C again kills at once"));
  EXPECT_TRUE(eventually([&] { return !lrun.workers().empty(); })) << "the first one only asks";
  lrun.type("\x03");
  EXPECT_EQ(lrun.wait().signal_number, SIGINT);
}

TEST(Signals, CtrlZStopsEverythingAndContinueGoesOn) {
  // In a group of its own below this process, as a shell with job control starts it.
  LrunProcess lrun({"-n", "2", "sh", "-c", kSleeper}, {.before_exec = [] { ::setpgid(0, 0); }});
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready"));
  std::vector<pid_t> workers;  // one that is just becoming 'sleep' cannot be seen
  ASSERT_TRUE(eventually([&] { return (workers = lrun.workers()).size() == 2; }));
  lrun.signal(SIGTSTP);
  EXPECT_TRUE(eventually([&] { return all_in_state(workers, 'T'); })) << "workers must stop";
  EXPECT_TRUE(eventually([&] { return process_state(lrun.pid()) == 'T'; })) << "and lrun, for the shell";
  lrun.signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return all_in_state(workers, 'S'); })) << "workers must go on";
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM);
}

TEST(Signals, TheGraceStandsStillWhileStopped) {
  with_more_time([](int factor) -> std::string {
    const auto grace = 500ms * factor;
    LrunProcess lrun({"-n", "1", "--grace", std::to_string(grace.count()) + "ms", "sh", "-c", kIgnoresSignals});
    if (!lrun.wait_for("[0] ready")) return "it does not start: " + lrun.err();
    const pid_t launcher = lrun.launcher_pid();
    const std::vector<pid_t> workers = living_children(launcher);
    const auto gone = [&] { return living_children(launcher).empty(); };
    lrun.signal(SIGTERM);
    if (!lrun.wait_for("received SIGTERM")) return "it does not hear: " + lrun.err();
    ::kill(launcher, SIGTSTP);
    if (!eventually([&] { return gone() || all_stopped(workers); })) return "the worker is not stopped";
    if (eventually(gone, grace + 500ms)) return "killed by a clock that should stand still";
    ::kill(launcher, SIGCONT);
    return lrun.wait().signal_number == SIGTERM ? "" : "it ended in another way: " + lrun.err();
  });
}

TEST(Signals, AStoppedWorkerIsContinuedToEndPolitely) {
  LrunProcess lrun({"-n", "2", "--grace", "1000s", "sh", "-c",
                    "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.01; done"});
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready"));
  const std::vector<pid_t> workers = living_children(lrun.launcher_pid());
  ASSERT_EQ(workers.size(), 2U);
  for (const pid_t worker : workers) ::kill(worker, SIGSTOP);
  ASSERT_TRUE(eventually([&] { return all_stopped(workers); }));
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM);
  EXPECT_NE(lrun.out().find("[0] saved"), std::string::npos) << lrun.out() << lrun.err();
  EXPECT_NE(lrun.out().find("[1] saved"), std::string::npos) << lrun.out() << lrun.err();
}

TEST(Signals, AStoppedWorkerBesideAFailedOneIsContinued) {
  LrunProcess lrun(
      {"-n", "2", "--grace", "1000s", "sh", "-c",
       "[ $RANK = 1 ] && { trap 'echo saved; exit 0' TERM; kill -STOP $$; while :; do sleep 0.01; done; }; "
       "trap 'exit 3' USR1; echo ready; while :; do sleep 0.01; done"});
  ASSERT_TRUE(lrun.wait_for("[0] ready"));
  const auto stopped = [&] {
    const std::vector<pid_t> workers = living_children(lrun.launcher_pid());
    return std::any_of(workers.begin(), workers.end(), [](pid_t pid) { return process_state(pid) == 'T'; });
  };
  ASSERT_TRUE(eventually(stopped));
  for (const pid_t pid : living_children(lrun.launcher_pid())) {
    if (process_state(pid) != 'T') ::kill(pid, SIGUSR1);
  }
  EXPECT_EQ(lrun.wait().code, 3) << lrun.err();
  EXPECT_NE(lrun.out().find("[1] saved"), std::string::npos) << lrun.out() << lrun.err();
}

TEST(Signals, NohupIsRespected) {
  LrunProcess lrun({"-n", "1", "sh", "-c", kSleeper}, {.before_exec = [] { ::signal(SIGHUP, SIG_IGN); }});
  ASSERT_TRUE(lrun.wait_for("[0] ready"));
  lrun.signal(SIGHUP);
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM) << lrun.err();
}

TEST(Signals, AClosedStdoutEndsTheRunQuietly) {
  LrunProcess lrun({"-n", "2", "sh", "-c", "while :; do echo line; sleep 0.01; done"});
  ASSERT_TRUE(lrun.wait_for("[0] line"));
  lrun.close_stdout();
  EXPECT_EQ(lrun.wait().signal_number, SIGPIPE) << lrun.err();
}

TEST(Signals, AWorkerThatObeysWithACodeIsNotBlamed) {
  LrunProcess lrun({"-n", "2", "sh", "-c", "trap 'exit 7' INT; echo ready; while :; do sleep 0.01; done"});
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready"));
  lrun.signal(SIGINT);
  EXPECT_EQ(lrun.wait().signal_number, SIGINT);
  EXPECT_EQ(lrun.err().find("exited with code 7"), std::string::npos) << lrun.err();
}

TEST(Signals, ATermToBothProcessesOfLrunLeavesTheGraceAlone) {
  LrunProcess lrun(
      {"-n", "1", "sh", "-c", "trap 'sleep 0.3; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.01; done"});
  ASSERT_TRUE(lrun.wait_for("[0] ready"));
  ::kill(lrun.launcher_pid(), SIGTERM);
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM);
  EXPECT_NE(lrun.out().find("[0] saved"), std::string::npos) << lrun.err();
}

TEST(Signals, UserSignalsReachTheWorkersAndStopNothing) {
  LrunProcess lrun({"-n", "2", "sh", "-c", "trap 'echo checkpoint' USR1; echo ready; while :; do sleep 0.01; done"});
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready"));
  lrun.signal(SIGUSR1);
  EXPECT_TRUE(lrun.wait_for("[0] checkpoint") && lrun.wait_for("[1] checkpoint"));
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM);
}

TEST(Signals, AUserSignalThatEndsAWorkerIsSaidToBePassedOn) {
  LrunProcess lrun({"-n", "1", "sh", "-c", kSleeper});
  ASSERT_TRUE(lrun.wait_for("[0] ready"));
  lrun.signal(SIGUSR2);
  EXPECT_EQ(lrun.wait().code, 128 + SIGUSR2);
  EXPECT_NE(lrun.err().find("died of SIGUSR2: sent to lrun and passed on; the program does not handle it\n"),
            std::string::npos)
      << lrun.err();
}

TEST(Signals, AUserSignalIsNotLostInOneThatCameDirectly) {
  LrunProcess lrun({"-n", "1", "sh", "-c", "trap 'echo checkpoint' USR1; echo ready; while :; do sleep 0.01; done"});
  ASSERT_TRUE(lrun.wait_for("[0] ready"));
  const pid_t launcher = lrun.launcher_pid();
  ::kill(launcher, SIGSTOP);
  ASSERT_TRUE(eventually([&] { return process_state(launcher) == 'T'; }));
  ::kill(launcher, SIGUSR1);
  lrun.signal(SIGUSR1);
  ASSERT_TRUE(eventually([&] { return !has_pending_signals(lrun.pid()) && process_state(lrun.pid()) == 'S'; }))
      << "the guard must have passed it on";
  ::kill(launcher, SIGCONT);
  EXPECT_TRUE(lrun.wait_for("[0] checkpoint")) << lrun.err();
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM);
}

TEST(Signals, ASecondCtrlCEndsALauncherThatDoesNotListen) {
  LrunProcess lrun({"-n", "1", "sh", "-c", "setsid sleep 1000 & echo ready; exec sleep 1000"});
  ASSERT_TRUE(lrun.wait_for("[0] ready"));
  ::kill(lrun.launcher_pid(), SIGSTOP);  // as one that waits for a dead file server
  for (int time = 0; time < 2; ++time) {
    lrun.signal(SIGINT);
    ASSERT_TRUE(eventually([&] { return !has_pending_signals(lrun.pid()); }));
  }
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_NE(lrun.err().find("lrun itself did not answer and was killed; all workers were ended"), std::string::npos)
      << lrun.err();
  EXPECT_TRUE(lrun.processes().empty());
}

TEST(Signals, AStrangerCannotTellThatTheGuardDied) {
  LrunProcess lrun({"-n", "1", "sh", "-c", kSleeper});
  ASSERT_TRUE(lrun.wait_for("[0] ready"));
  const pid_t launcher = lrun.launcher_pid();
  for (const int own : {SIGRTMIN, SIGRTMIN + 1}) ::sigqueue(launcher, own, sigval{.sival_int = SIGINT});
  ASSERT_TRUE(eventually([&] { return !has_pending_signals(launcher); }));
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM) << lrun.err();
  EXPECT_EQ(lrun.err().find("guard"), std::string::npos) << lrun.err();
}

TEST(Signals, AnInheritedIgnoredSigchldAndBlockedTermDoNoHarm) {
  LrunProcess lrun({"-n", "2", "sh", "-c", kSleeper}, {.before_exec = [] {
                     ::signal(SIGCHLD, SIG_IGN);
                     const sigset_t blocked = signal_set({SIGTERM});
                     ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
                   }});
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready"));
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM);
  EXPECT_EQ(lrun.err().find("killing"), std::string::npos) << lrun.err();
}

TEST(Signals, CtrlZIsIgnoredWhereNoShellCouldContinue) {
  LrunProcess lrun({"-n", "1", "sh", "-c", kSleeper}, {.before_exec = [] { ::setsid(); }});
  ASSERT_TRUE(lrun.wait_for("[0] ready"));
  lrun.signal(SIGTSTP);
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM) << "a stopped lrun would not hear it";
}

TEST(Signals, AUserSignalThatIsNamedEndsTheRun) {
  LrunProcess lrun({"-n", "2", "--signals-to-handle", "SIGTERM,USR1", "sh", "-c",
                    "trap 'echo got it; exit 0' USR1; echo ready; while :; do sleep 0.01; done"});
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready"));
  lrun.signal(SIGUSR1);
  EXPECT_EQ(lrun.wait().signal_number, SIGUSR1) << lrun.err();
  EXPECT_NE(lrun.out().find("[1] got it"), std::string::npos) << lrun.out();
}

TEST(Signals, OneThatIsNotNamedEndsLrunAndLeavesNothing) {
  LrunProcess lrun({"-n", "2", "--signals-to-handle", "SIGTERM", "sh", "-c", kIgnoresSignals});
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready"));
  lrun.signal(SIGHUP);
  EXPECT_EQ(lrun.wait().signal_number, SIGHUP);
  EXPECT_TRUE(eventually([&] { return lrun.processes().empty(); }));
}

constexpr const char* kWrapper =
    "sh -c 'trap \"sleep 0.3; echo saved; exit 0\" INT TERM; echo ready; while :; do sleep 0.01; done'; true";

TEST(Signals, AProgramBehindAShellHasTheGraceToo) {
  LrunProcess lrun({"-n", "2", "sh", "-c", kWrapper});
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready"));
  lrun.signal(SIGTERM);  // the shells die of it at once
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM);
  EXPECT_NE(lrun.out().find("[0] saved"), std::string::npos) << lrun.out() << lrun.err();
  EXPECT_NE(lrun.out().find("[1] saved"), std::string::npos) << lrun.out() << lrun.err();
}

TEST(Signals, CtrlCReachesAProgramBehindAShell) {
  LrunProcess lrun({"-n", "2", "--grace", "1000s", "sh", "-c", "sleep 1000; true"});
  // A shell whose child is between vfork and exec takes the signal for both and forgets it.
  ASSERT_TRUE(eventually([&] { return std::ranges::count(lrun.workers(), "sleep", program_name) == 2; }));
  lrun.signal(SIGINT);
  EXPECT_EQ(lrun.wait().signal_number, SIGINT);
}

TEST(Signals, NewsForTheWorkersDoesNotEndTheGraceOfWhatTheyLeftBehind) {
  TemporaryFolder folder;
  const std::string gate = folder.path() / "gate";
  LrunProcess lrun({"-n", "1", "--grace", "1000s", "sh", "-c",
                    "sh -c 'trap \"echo saving; while ! [ -e " + gate +
                        " ]; do sleep 0.01; done; echo saved; exit 0\" TERM; echo ready; while :; do sleep 0.01; "
                        "done'; true"});
  ASSERT_TRUE(lrun.wait_for("[0] ready"));
  lrun.signal(SIGTERM);  // the shell dies of it at once
  ASSERT_TRUE(lrun.wait_for("[0] saving"));
  for (const int signal_number : {SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT}) ::kill(lrun.launcher_pid(), signal_number);
  lrun.signal(SIGUSR1);
  ASSERT_TRUE(eventually([&] { return !has_pending_signals(lrun.launcher_pid()); })) << "all were read";
  std::ofstream(gate) << "open";
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM);
  EXPECT_NE(lrun.out().find("[0] saved"), std::string::npos) << lrun.out() << lrun.err();
}

TEST(Signals, WhatIgnoresTheSignalBehindAShellIsKilledAfterTheGrace) {
  LrunProcess lrun({"-n", "1", "--grace", "300ms", "sh", "-c",
                    "sh -c 'trap \"\" TERM; echo ready; while :; do sleep 1000; done'; true"});
  ASSERT_TRUE(lrun.wait_for("[0] ready"));
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM);
}

}  // namespace
}  // namespace lrun::test
