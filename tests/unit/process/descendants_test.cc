#include "process/descendants.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "base/fd.h"
#include "process/signal_set.h"

namespace lrun {
namespace {

/// Runs `body` in a forked subreaper, so that the test program itself adopts nothing. \return its exit code.
int in_subreaper(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const sigset_t child_signal = signal_set({SIGCHLD});
    ::sigprocmask(SIG_BLOCK, &child_signal, nullptr);
    become_subreaper();
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(Descendants, EndsOrphansWithSessionsOfTheirOwn) {
  Pipe pipe = make_pipe();
  const int code = in_subreaper([&] {
    const pid_t worker = ::fork();
    if (worker == 0) {
      if (::fork() == 0) {  // the grandchild escapes group and session and ignores TERM
        ::setsid();
        ::signal(SIGTERM, SIG_IGN);
        if (::fork() != 0) ::_exit(0);
        const pid_t self = ::getpid();
        (void)!::write(pipe.write.get(), &self, sizeof self);
        while (true) ::pause();
      }
      ::_exit(0);
    }
    pid_t escaped = 0;
    if (::read(pipe.read.get(), &escaped, sizeof escaped) != sizeof escaped) return 1;
    if (::kill(escaped, 0) != 0) return 2;
    if (!end_all_descendants(Duration(10'000)).empty()) return 3;
    return ::kill(escaped, 0) == 0 ? 4 : 0;
  });
  EXPECT_EQ(code, 0);
}

TEST(Descendants, EndButForThoseThatAreSpared) {
  const int code = in_subreaper([] {
    const auto sleeper = [] {
      const pid_t child = ::fork();
      if (child != 0) return child;
      while (true) ::pause();
    };
    const std::vector<pid_t> spared{sleeper(), sleeper()};
    const pid_t other = sleeper();
    if (!end_all_descendants(Duration(10'000), {}, spared).empty()) return 1;
    if (::kill(other, 0) == 0) return 2;
    for (const pid_t pid : spared) {
      if (::waitpid(pid, nullptr, WNOHANG) != 0) return 3;
    }
    // One of them has ended by itself.
    ::kill(spared.front(), SIGKILL);
    ::waitpid(spared.front(), nullptr, 0);
    if (!end_all_descendants(Duration(10'000), {}, spared).empty()) return 4;
    if (::kill(spared.back(), 0) != 0) return 5;
    if (!end_all_descendants(Duration(10'000)).empty()) return 6;
    return ::kill(spared.back(), 0) == 0 ? 7 : 0;
  });
  EXPECT_EQ(code, 0);
}

/// \return false where this process may not.
bool hide_proc() {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", "/proc", "tmpfs", 0, nullptr) == 0;
}

TEST(Descendants, EndWithoutProcToo) {
  constexpr int kMayNot = 77;
  const int code = in_subreaper([] {
    if (!hide_proc()) return kMayNot;
    Pipe alive = make_pipe();
    const pid_t worker = ::fork();
    if (worker == 0) {
      if (::fork() != 0) ::_exit(0);
      ::setsid();
      while (true) ::pause();
    }
    ::waitpid(worker, nullptr, 0);
    alive.write.reset();  // now the orphan alone holds it
    const std::vector<pid_t> survivors = end_all_descendants(Duration(20'000));
    char byte = 0;
    if (::read(alive.read.get(), &byte, 1) != 0) return 2;
    return survivors.empty() ? 0 : 1;
  });
  if (code == kMayNot) GTEST_SKIP() << "needs a mount namespace";
  EXPECT_EQ(code, 0);
}

TEST(Descendants, ThatDoNotEndAreTold) {
  const pid_t pid = ::getpid();
  const std::string number = std::to_string(pid);
  EXPECT_EQ(survivors_text({pid}), "1 process cannot be ended (uninterruptible in the kernel): pid " + number);
  EXPECT_EQ(survivors_text({pid, 8}),
            "2 processes cannot be ended (uninterruptible in the kernel), first pid " + number);
  EXPECT_EQ(survivors_text({kUnlisted}), "processes that the workers left cannot be listed: there is no /proc");
}

TEST(Descendants, ThatMayNotBeSignalledAreToldAsAnotherUsers) {
  const int code = in_subreaper([] {
    constexpr uid_t kNobody = 65534;
    if (::getuid() == 0 && ::setuid(kNobody) != 0) return 1;
    return survivors_text({1}) == "1 process cannot be ended (another user's): pid 1" ? 0 : 2;
  });
  EXPECT_EQ(code, 0);
}

TEST(Descendants, ReapsAdoptedOrphansAndLeavesWorkersToTheirOwner) {
  const int code = in_subreaper([] {
    const pid_t worker = ::fork();
    if (worker == 0) ::_exit(5);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(worker), &info, WEXITED | WNOWAIT);
    reap_adopted([&](pid_t pid) { return pid == worker; });
    int status = 0;
    if (::waitpid(worker, &status, WNOHANG) != worker) return 1;
    const pid_t orphan = ::fork();
    if (orphan == 0) ::_exit(0);
    ::waitid(P_PID, static_cast<id_t>(orphan), &info, WEXITED | WNOWAIT);
    reap_adopted([](pid_t) { return false; });
    return direct_children().empty() ? 0 : 2;
  });
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace lrun
