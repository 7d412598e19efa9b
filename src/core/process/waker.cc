// In: the guard and the launcher as pidfds, and the workers' cgroup. Out: neither stays stopped when the other is dead,
// and the cgroup and the folder in memory go with them. Called by the guard.
#include "process/waker.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "process/launcher_heartbeat.h"
#include "process/process_title.h"

namespace lrun::inline core {
namespace {

constexpr int kGuard = 0;  // descriptors of the waker: pidfds, and it has no others but those of what it removes
constexpr int kLauncher = 1;

void close_between(unsigned first, unsigned last) {
  constexpr unsigned kMost = 256;  // of a process that has just begun
  if (first > last || ::syscall(SYS_close_range, first, last, 0) == 0) return;
  for (unsigned fd = first; fd <= std::min(last, kMost); ++fd) ::close(static_cast<int>(fd));
}

/// A copy of the guard's connection in this process would hide the guard's end from other nodes.
/// \param kept  in ascending order; -1: none
void close_all_from(int first, const std::pair<int, int>& kept) {
  for (const int fd : {kept.first, kept.second}) {
    if (fd < first) continue;
    close_between(static_cast<unsigned>(first), static_cast<unsigned>(fd) - 1);
    first = fd + 1;
  }
  close_between(static_cast<unsigned>(first), ~0U);
}

/// How long to wait for a death; -1: for ever. `silent`: the launcher of a job of several nodes sends no heartbeat.
struct Pause {
  int ms = -1;
  bool silent = false;
};

Pause next_pause(Duration heartbeat, const std::atomic<SteadyTime>& heartbeat_time) {
  if (heartbeat == Duration::zero()) return {};
  const SteadyTime last = heartbeat_time;
  const SteadyTime now = steady_now();
  const SteadyTime alarm = HeartbeatWatch::alarm(last == SteadyTime() ? now : last, heartbeat);
  const auto ms = [](SteadyTime::duration time) { return static_cast<int>(time / Duration(1)) + 1; };
  return alarm > now ? Pause{ms(alarm - now), false} : Pause{ms(heartbeat / 10), true};
}

void wake(int process) { ::syscall(SYS_pidfd_send_signal, process, SIGCONT, nullptr, 0); }

/// The life of the waker, with all signals blocked. Until guard and launcher are dead it makes async-signal-safe calls
/// only. Then memory may be allocated, too: the guard that was forked had one thread, so that no lock was held.
[[noreturn]] void wake_the_other(int guard, int launcher, Duration heartbeat, const std::atomic<SteadyTime>& last,
                                 const RunCgroup& cgroup, const MemoryFolder& memory, std::string_view title) noexcept {
  constexpr int kPauseMs = 100;  // in order, the guard ends sooner, and this process with it
  ::setsid();                    // a signal to the guard's group is not for this process
  // Stopped itself, it would outlive a guard that is killed: the kernel continues it then. A guard that lives kills it.
  ::prctl(PR_SET_PDEATHSIG, SIGCONT);
  ::prctl(PR_SET_NAME, kWakerName);
  set_process_title(title);
  ::dup2(guard, kGuard);
  ::dup2(launcher, kLauncher);
  close_all_from(kLauncher + 1, std::minmax({cgroup.fd(), memory.fd()}));
  pollfd both[]{{kGuard, POLLIN, 0}, {kLauncher, POLLIN, 0}};
  for (Pause pause = next_pause(heartbeat, last); ::poll(both, 2, pause.ms) <= 0;) {
    pause = next_pause(heartbeat, last);
    if (pause.silent) wake(kGuard);
  }
  pollfd other{both[kGuard].revents != 0 ? kLauncher : kGuard, POLLIN, 0};
  while (::poll(&other, 1, kPauseMs) <= 0) wake(other.fd);
  cgroup.remove();
  memory.remove();
  ::_exit(0);
}

}  // namespace

Waker::Waker(pid_t guard, const PidFd& launcher, Duration heartbeat, const std::atomic<SteadyTime>& last,
             const RunCgroup& cgroup, const MemoryFolder& memory) {
  const Fd guards(static_cast<int>(::syscall(SYS_pidfd_open, guard, 0)));
  if (!guards || launcher.poll_fd() < 0) return;
  const std::string title = std::string(kWakerName) + " of process " + std::to_string(guard);
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  // A fork without a signal to the parent at its end: ordinary waits of the guard do not see it.
  pid_ = static_cast<pid_t>(::syscall(SYS_clone, 0, nullptr, nullptr, nullptr, nullptr));
  if (pid_ == 0) wake_the_other(guards.get(), launcher.poll_fd(), heartbeat, last, cgroup, memory, title);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

Waker::~Waker() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, static_cast<int>(__WCLONE));
}

}  // namespace lrun::inline core
