#include "process/signal_set.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lrun {
namespace {

using Signals = std::vector<int>;

/// The status of a child that does `deed`, as of waitpid().
template <class Deed>
int status_of_child(Deed deed) {
  const pid_t child = ::fork();
  if (child == 0) {
    deed();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(SignalSet, HasTheSignalsThatWereNamed) {
  const sigset_t set = signal_set({SIGTERM, SIGUSR1});
  EXPECT_EQ(::sigismember(&set, SIGTERM), 1);
  EXPECT_EQ(::sigismember(&set, SIGUSR1), 1);
  EXPECT_EQ(::sigismember(&set, SIGUSR2), 0);
}

TEST(WithoutIgnored, NamesEachSignalOnceAndNoneThatIsIgnored) {
  const int status = status_of_child([] {
    ::signal(SIGHUP, SIG_IGN);
    const bool right = without_ignored({SIGTERM, SIGHUP, SIGINT, SIGTERM}) == Signals{SIGINT, SIGTERM};
    if (!right) ::_exit(1);
  });
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(DieOf, IsADeathByTheSignalThoughItWasBlockedAndHandled) {
  const int status = status_of_child([] {
    const sigset_t set = signal_set({SIGQUIT});
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    ::signal(SIGQUIT, [](int) {});
    die_of(SIGQUIT);
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGQUIT);
  EXPECT_FALSE(WCOREDUMP(status));
}

TEST(DieOf, ASignalThatEndsNothingIsItsExitCode) {
  const int status = status_of_child([] { die_of(SIGWINCH); });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGWINCH);
}

}  // namespace
}  // namespace lrun
