#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

#include "support/lrun_process.h"

namespace lrun::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The worker forks a child in its own group that ignores TERM, and one with a session of its own.
constexpr const char* kFamily =
    "(trap '' TERM INT HUP; while :; do sleep 1000; done) & "
    "setsid sh -c 'trap \"\" TERM INT HUP; while :; do sleep 1000; done' & "
    "echo ready; exec sleep 1000";

/// LrunProcess's destructor demands that nothing is left after any of these ends.
TEST(Containment, NothingIsLeftAfterAWorkerFailed) {
  LrunProcess lrun({"-n", "2", "--grace", "1s", "sh", "-c",
                    std::string("[ $RANK = 1 ] && { setsid sleep 1000 & sleep 0.2; exit 3; }; ") + kFamily});
  EXPECT_EQ(lrun.wait().code, 3);
}

TEST(Containment, OnlyTheGuardIsKilledByTheNameOfLrun) {
  if (std::getenv("LRUN_TEST_UNDER") != nullptr) GTEST_SKIP() << "the command line is that of another program";
  LrunProcess lrun({"-n", "1", "sh", "-c", "setsid sleep 1000 & echo ready; sleep 1000; true"});
  ASSERT_TRUE(lrun.wait_for("[0] ready"));
  std::string comm;
  std::getline(std::ifstream("/proc/" + std::to_string(lrun.launcher_pid()) + "/comm") >> std::ws, comm);
  EXPECT_EQ(comm, "rank-supervisor");
  std::string shown;
  for (const pid_t child : lrun.children()) {
    ASSERT_TRUE(eventually([&] {
      std::ifstream file("/proc/" + std::to_string(child) + "/cmdline");
      return std::getline(file, shown, '\0') && shown.starts_with("rank-");  // to the first 0
    })) << shown;
    EXPECT_THAT(shown, Not(HasSubstr("lrun")));
    EXPECT_THAT(shown, HasSubstr(std::to_string(lrun.pid()))) << "a person should see whose it is: ";
  }
  lrun.signal(SIGKILL);  // as pkill -9 -f lrun
  (void)lrun.wait();
  EXPECT_TRUE(eventually([&] { return lrun.processes().empty(); }));
}

TEST(Containment, NothingIsLeftAfterASuccess) {
  LrunProcess lrun({"-n", "2", "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo done"});
  EXPECT_EQ(lrun.wait().code, 0);
}

/// Takes /proc from this process and those that it starts. \return false where it may not.
bool hide_proc() {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", "/proc", "tmpfs", 0, nullptr) == 0;
}

bool may_hide_proc() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(hide_proc() ? 0 : 1);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Containment, NothingIsLeftWithoutProc) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer needs /proc";
#endif
  if (!may_hide_proc()) GTEST_SKIP() << "needs a mount namespace";
  LrunProcess lrun({"-n", "2", "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo done"},
                   {.before_exec = [] { (void)hide_proc(); }});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_THAT(lrun.err(), Not(HasSubstr("cannot be ")));
  EXPECT_THAT(lrun.err(), HasSubstr("no record of this run will be kept: its control socket needs /proc"));
}

TEST(Containment, AGrandchildThatHoldsThePipeDelaysTheEndByASecondAtMost) {
  LrunProcess lrun({"-n", "2", "sh", "-c", "setsid sleep 1000 & echo done"});
  EXPECT_EQ(lrun.wait().code, 0) << "it waited for what holds the pipe for 1000 seconds";
  EXPECT_THAT(lrun.out(), HasSubstr("[0] done"));
}

TEST(Containment, NothingIsLeftAfterTheWholeOfLrunWasInterrupted) {
  LrunProcess lrun({"-n", "2", "--grace", "1s", "sh", "-c", kFamily});
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready"));
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM);
}

TEST(Containment, NothingIsLeftAfterKillOfTheGuard) {
  LrunProcess lrun({"-n", "2", "sh", "-c", kFamily});
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready"));
  ASSERT_TRUE(eventually([&] { return lrun.workers().size() >= 6; }));
  lrun.signal(SIGKILL);
  EXPECT_EQ(lrun.wait().signal_number, SIGKILL);
}

TEST(Containment, NothingIsLeftAfterKillOfTheLauncher) {
  LrunProcess lrun({"-n", "2", "sh", "-c", kFamily});
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready"));
  ASSERT_TRUE(eventually([&] { return lrun.workers().size() >= 6; }));
  ASSERT_EQ(::kill(lrun.launcher_pid(), SIGKILL), 0);
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_THAT(lrun.err(), HasSubstr("lrun itself died of SIGKILL"));
}

/// \return how the guard ended: of SIGKILL, or in order, where it was continued between the two kills and cleaned up.
LrunEnd kill_guard_and_launcher() {
  LrunProcess lrun({"-n", "2", "sh", "-c", "echo ready; exec sleep 1000"});
  EXPECT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready"));
  const pid_t launcher = lrun.launcher_pid();
  lrun.signal(SIGSTOP);  // the guard must not have the time to clean up
  EXPECT_TRUE(eventually([&] { return process_state(lrun.pid()) == 'T'; }));
  EXPECT_EQ(::kill(launcher, SIGKILL), 0);
  lrun.signal(SIGKILL);
  return lrun.wait();
}

TEST(Containment, WorkersDieEvenWhenGuardAndLauncherAreKilledTogether) {
  constexpr int kTries = 20;
  LrunEnd end;
  for (int i = 0; i < kTries && end.signal_number != SIGKILL; ++i) end = kill_guard_and_launcher();
  EXPECT_EQ(end.signal_number, SIGKILL);
}

TEST(Containment, AnUnrelatedProcessIsLeftAlone) {
  LrunProcess other({"-n", "1", "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(other.wait_for("[0] ready"));
  LrunProcess lrun({"-n", "1", "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(lrun.wait_for("[0] ready"));
  lrun.signal(SIGKILL);
  lrun.wait();
  ASSERT_TRUE(eventually([&] { return lrun.processes().empty(); }));
  EXPECT_TRUE(eventually([&] { return other.workers().size() == 1; })) << "one that becomes 'sleep' is not seen";
  other.signal(SIGTERM);
  other.wait();
}

TEST(Containment, OrphansThatEndAreReapedWhileTheRunGoesOn) {
  LrunProcess lrun(
      {"-n", "1", "sh", "-c",
       "for i in 1 2 3 4 5; do sh -c 'setsid sleep 0.01 &'; done; sleep 0.2; echo ready; exec sleep 1000"});
  ASSERT_TRUE(lrun.wait_for("[0] ready"));
  const pid_t launcher = lrun.launcher_pid();
  EXPECT_TRUE(eventually([&] { return zombie_children(launcher) == 0; }));
  lrun.signal(SIGTERM);
  lrun.wait();
}

}  // namespace
}  // namespace lrun::test
