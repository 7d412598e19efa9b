#include "process/guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "base/fd.h"
#include "base/own_signals.h"
#include "process/guard_death.h"

namespace lrun {
namespace {

struct Pids {
  pid_t guard = 0;
  pid_t launcher = 0;
  pid_t worker = 0;
};

/// A launcher that started a worker and then never comes back to its loop. While the worker lives, and the guard, the
/// second pipe does not end.
[[noreturn]] void be_guard_of_held_launcher(Fd& told, Fd& held_by_worker) {
  (void)run_guarded({SIGTERM}, [&](Guard& guard) {
    const pid_t worker = ::fork();
    if (worker == 0) {
      ::setsid();
      while (true) ::pause();
    }
    held_by_worker.reset();
    note_group(worker);
    const Pids pids{guard.pid(), ::getpid(), worker};
    (void)!::write(told.get(), &pids, sizeof pids);
    while (true) ::pause();
    return 0;
  });
  ::_exit(0);
}

struct HoldingLauncher {
  pid_t pid = 0;
  int connection = -1;  ///< its read end of the pipe that ends with the connection
  int grandchild = -1;  ///< its read end of the pipe that ends with its grandchild
};

/// A launcher that holds a connection and has a grandchild in a session of its own. The guard has
/// copies of its descriptors only from it.
[[noreturn]] void be_guard_that_holds(Fd& told) {
  (void)run_guarded({SIGTERM},
                    [&](Guard& guard) {
                      Pipe connection = make_pipe();
                      Pipe grandchild = make_pipe();
                      if (::fork() == 0) {
                        connection.write.reset();
                        ::setsid();
                        while (true) ::pause();
                      }
                      grandchild.write.reset();
                      guard.hold(connection.write.get());
                      connection.write.reset();
                      const HoldingLauncher here{::getpid(), connection.read.get(), grandchild.read.get()};
                      (void)!::write(told.get(), &here, sizeof here);
                      while (true) ::pause();
                      return 0;
                    },
                    {.heartbeat = Duration(60'000)});
  ::_exit(0);
}

Fd opened(pid_t pid, int fd) {
  return Fd(::open(("/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd)).c_str(), O_RDONLY | O_CLOEXEC));
}

bool reaches_its_end(const Fd& pipe) {
  constexpr int kPatienceMs = 30'000;
  pollfd end{pipe.get(), POLLIN, 0};
  return ::poll(&end, 1, kPatienceMs) > 0 && (end.revents & POLLHUP) != 0;
}

TEST(Guard, WorkersEndWithItThoughTheLauncherIsHeld) {
  Pipe pids_pipe = make_pipe();
  Pipe life = make_pipe();
  const pid_t guard = ::fork();
  if (guard == 0) be_guard_of_held_launcher(pids_pipe.write, life.write);
  life.write.reset();
  Pids pids;
  ASSERT_EQ(::read(pids_pipe.read.get(), &pids, sizeof pids), static_cast<ssize_t>(sizeof pids));
  ::kill(pids.launcher, guard_died_signal());
  pollfd early{life.read.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&early, 1, 0), 0) << "the guard lives";
  ::kill(guard, SIGKILL);
  ::waitpid(guard, nullptr, 0);
  EXPECT_TRUE(reaches_its_end(life.read)) << "the worker lives on";
  ::kill(pids.launcher, SIGKILL);  // it would end by itself later
  if (::getpgid(pids.worker) == pids.worker) ::kill(pids.worker, SIGKILL);
}

TEST(Guard, ClosesTheConnectionOfAKilledLauncherWhenNothingOfItRunsAnyMore) {
  Pipe told = make_pipe();
  const pid_t guard = ::fork();
  if (guard == 0) be_guard_that_holds(told.write);
  HoldingLauncher launcher;
  ASSERT_EQ(::read(told.read.get(), &launcher, sizeof launcher), static_cast<ssize_t>(sizeof launcher));
  const Fd connection = opened(launcher.pid, launcher.connection);
  const Fd grandchild = opened(launcher.pid, launcher.grandchild);
  ASSERT_TRUE(connection && grandchild);
  pollfd end{connection.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 0), 0) << "the launcher has closed it, but not the guard";
  ::kill(launcher.pid, SIGKILL);
  EXPECT_TRUE(reaches_its_end(connection));
  end.fd = grandchild.get();
  EXPECT_EQ(::poll(&end, 1, 0), 1) << "a grandchild lives on";
  ::waitpid(guard, nullptr, 0);
}

/// \return the exit code of a launcher whose worker the guard has ended: 0 where that is forgotten with the next ones.
int begin_again(Guard& guard) {
  const pid_t worker = ::fork();
  while (worker == 0) ::pause();
  guard.begin_workers();  // the only heartbeat
  ::waitpid(worker, nullptr, 0);
  if (!guard.has_ended_workers()) return 1;
  guard.begin_workers();
  return guard.has_ended_workers() ? 2 : 0;
}

TEST(Guard, HasNotEndedTheWorkersThatBeginAfterIt) {
  const pid_t guard = ::fork();
  if (guard == 0) ::_exit(run_guarded({SIGTERM}, begin_again, {.heartbeat = Duration(1000)}));
  int status = 0;
  ::waitpid(guard, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace lrun
