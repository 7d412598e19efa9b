#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "base/duration.h"
#include "support/lrun_process.h"
#include "support/with_more_time.h"
#include "support/words.h"

namespace lrun::test {
namespace {

TEST(TimeLimits, ARunThatTakesTooLongIsStoppedPolitely) {
  with_more_time([](int factor) -> std::string {
    const std::string limit = format_duration(300ms * factor);
    LrunProcess lrun(
        {"-n", "2", "--timeout", limit, "sh", "-c", "trap 'echo saved; exit 0' TERM; while :; do sleep 0.01; done"});
    EXPECT_EQ(lrun.wait().code, 124) << lrun.err();
    EXPECT_NE(lrun.err().find("the " + limit + " of --timeout are over"), std::string::npos) << lrun.err();
    const bool saved = contains(lrun.out(), "[0] saved") && contains(lrun.out(), "[1] saved");
    return saved ? "" : "not both have saved: " + lrun.out();
  });
}

TEST(TimeLimits, TheTimeIsThatOfAllAttempts) {
  LrunProcess lrun({"-n", "1", "--timeout", "500ms", "--max-restarts", "99", "--restart-backoff", "1000s", "sh", "-c",
                    "exit $((3 + TORCHELASTIC_RESTART_COUNT))"});
  EXPECT_EQ(lrun.wait().code, 124) << lrun.err();
}

TEST(TimeLimits, NothingStartsThatFallsDueTogetherWithTheEndOfTheTime) {
  with_more_time([](int factor) -> std::string {
    LrunProcess lrun({"-n", "1", "--timeout", format_duration(1500ms * factor), "--max-restarts", "9",
                      "--restart-backoff", format_duration(500ms * factor), "sh", "-c",
                      "echo attempt $TORCHELASTIC_RESTART_COUNT; [ $TORCHELASTIC_RESTART_COUNT = 2 ] && exit 0; "
                      "exit $((3 + TORCHELASTIC_RESTART_COUNT))"});
    if (!lrun.wait_for("restart 2 of 9 in ")) return "it ended before: " + lrun.err();
    const pid_t launcher = lrun.launcher_pid();
    ::kill(launcher, SIGSTOP);  // as a machine that sleeps
    EXPECT_FALSE(eventually([&] { return lrun.processes().empty(); }, 2000ms * factor));
    ::kill(launcher, SIGCONT);
    const int code = lrun.wait().code;
    if (contains(lrun.out(), "attempt 2")) return "another attempt was started: " + lrun.out();
    return code == 124 ? "" : "it ended with " + std::to_string(code) + ": " + lrun.err();
  });
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
  with_more_time([](int factor) -> std::string {
    const std::string limit = format_duration(1s * factor);
    LrunProcess lrun({"-n", "3", "--start-timeout", limit, "bash", "-c", kOnlyRankZero});
    EXPECT_EQ(lrun.wait().code, 124) << lrun.err();
    const std::string words = "ranks 1-2 were not connected to the store after the " + limit + " of --start-timeout";
    return contains(lrun.err(), words) ? "" : "it does not say '" + words + "': " + lrun.err();
  });
}

}  // namespace
}  // namespace lrun::test
