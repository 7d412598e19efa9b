#include "process/guard.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

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

}  // namespace
}  // namespace lrun
