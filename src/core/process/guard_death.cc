#include "process/guard_death.h"

#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "base/own_signals.h"
#include "process/exit_codes.h"
#include "process/run_cgroup.h"
#include "process/signal_set.h"

namespace lrun::inline core {
namespace {

constexpr std::size_t kMostGroups = 4096;
constexpr itimerspec kSteps{.it_interval = {20, 0}, .it_value = {1, 0}};

// For a signal handler: without destructors and locks.
std::array<std::atomic<pid_t>, kMostGroups> groups;
std::atomic<int> cgroup_folder = -1;
std::atomic<pid_t> guard_pid;
std::atomic<bool> has_timer;
timer_t timer;
std::atomic<int> step;
static_assert(std::atomic<pid_t>::is_always_lock_free);

void notify_loop() {
  sigval number{};
  number.sival_int = guard_died_signal();
  ::sigqueue(::getpid(), forwarded_signal(), number);
}

/// Called by the death signal, and then by the timer. Async-signal-safe calls only.
void on_signal(int, siginfo_t* info, void*) {
  if (::getppid() == guard_pid) return;  // any process of this user can send the signal
  if (step > 0 && info->si_code != SI_TIMER) return;
  const int saved_error = errno;
  switch (step++) {
    case 0:
      if (has_timer) ::timer_settime(timer, 0, &kSteps, nullptr);
      break;
    case 1:
      kill_cgroup(cgroup_folder);
      for (const std::atomic<pid_t>& group : groups) {
        if (const pid_t pid = group; pid > 0) ::kill(-pid, SIGKILL);
      }
      break;
    default:
      ::_exit(kExitRefused);
  }
  notify_loop();
  errno = saved_error;
}

}  // namespace

void watch_for_death_of(pid_t guard) {
  guard_pid = guard;
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = guard_died_signal();
  has_timer = ::timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  ::sigfillset(&action.sa_mask);
  ::sigaction(guard_died_signal(), &action, nullptr);
  const sigset_t death = signal_set({guard_died_signal()});
  ::sigprocmask(SIG_UNBLOCK, &death, nullptr);
  ::prctl(PR_SET_PDEATHSIG, guard_died_signal());
}

void note_cgroup(int folder) { cgroup_folder = folder; }

void note_group(pid_t group) {
  for (std::atomic<pid_t>& slot : groups) {
    pid_t free = 0;
    if (slot.compare_exchange_strong(free, group)) return;
  }
}

void forget_group(pid_t group) {
  for (std::atomic<pid_t>& slot : groups) {
    pid_t noted = group;
    if (slot.compare_exchange_strong(noted, 0)) return;
  }
}

}  // namespace lrun::inline core
