#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "support/lrun_process.h"

namespace lrun::test {
namespace {

TEST(TimeLimits, ARunThatTakesTooLongIsStoppedPolitely) {
  LrunProcess lrun(
      {"-n", "2", "--timeout", "300ms", "sh", "-c", "trap 'echo saved; exit 0' TERM; while :; do sleep 0.01; done"});
  EXPECT_EQ(lrun.wait().code, 124) << lrun.err();
  EXPECT_NE(lrun.out().find("[0] saved"), std::string::npos) << lrun.out();
  EXPECT_NE(lrun.err().find("the 300ms of --timeout are over"), std::string::npos) << lrun.err();
}

TEST(TimeLimits, TheTimeIsThatOfAllAttempts) {
  LrunProcess lrun({"-n", "1", "--timeout", "500ms", "--max-restarts", "99", "--restart-backoff", "1000s", "sh", "-c",
                    "exit $((3 + TORCHELASTIC_RESTART_COUNT))"});
  EXPECT_EQ(lrun.wait().code, 124) << lrun.err();
}

TEST(TimeLimits, NothingStartsThatFallsDueTogetherWithTheEndOfTheTime) {
  LrunProcess lrun({"-n", "1", "--timeout", "1500ms", "--max-restarts", "9", "--restart-backoff", "500ms", "sh", "-c",
                    "echo attempt $TORCHELASTIC_RESTART_COUNT; [ $TORCHELASTIC_RESTART_COUNT = 2 ] && exit 0; "
                    "exit $((3 + TORCHELASTIC_RESTART_COUNT))"});
  ASSERT_TRUE(lrun.wait_for("restart 2 of 9 in 500ms")) << lrun.err();
  const pid_t launcher = lrun.launcher_pid();
  ::kill(launcher, SIGSTOP);  // as a machine that sleeps
  EXPECT_FALSE(eventually([&] { return lrun.processes().empty(); }, 2000ms));
  ::kill(launcher, SIGCONT);
  EXPECT_EQ(lrun.wait().code, 124) << lrun.err();
  EXPECT_EQ(lrun.out().find("attempt 2"), std::string::npos) << lrun.out();
}

TEST(TimeLimits, AFailureBeforeItStaysTheReason) {
  LrunProcess lrun({"-n", "1", "--timeout", "1000s", "sh", "-c", "exit 3"});
  EXPECT_EQ(lrun.wait().code, 3) << lrun.err();
}

/// Rank 0 connects to the store, with what a client says first.
constexpr const char* kOnlyRankZero =
    "[ $RANK = 0 ] && exec 7<>/dev/tcp/$MASTER_ADDR/$MASTER_PORT && printf '\\0\\xce\\xf7\\x85\\x3c' >&7; "
    "exec sleep 1000";

TEST(TimeLimits, WhoIsNotConnectedInTimeIsNamed) {
  LrunProcess lrun({"-n", "3", "--start-timeout", "1s", "bash", "-c", kOnlyRankZero});
  EXPECT_EQ(lrun.wait().code, 124) << lrun.err();
  EXPECT_NE(lrun.err().find("ranks 1-2 not connected to the store after the 1s of --start-timeout"), std::string::npos)
      << lrun.err();
}

}  // namespace
}  // namespace lrun::test
