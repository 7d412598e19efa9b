#include "process/guard.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <set>
#include <string>
#include <system_error>

#include "base/own_signals.h"
#include "process/descendants.h"
#include "process/exit_status.h"

namespace lrun {
namespace {

constexpr Duration kCleanUpLimit(5000);
constexpr Duration kSecondLookLimit(2000);  // the launcher had its own time for what is left, and told of it
constexpr int kLrunFailed = 125;

void say(const std::string& line) {
  const ssize_t ignored = ::write(STDERR_FILENO, line.data(), line.size());
  (void)ignored;
}

sigset_t signal_set(const std::vector<int>& numbers) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : numbers) ::sigaddset(&set, number);
  return set;
}

/// Dies of the signal as if it had never been handled, so that a shell, make or Slurm sees the truth.
[[noreturn]] void die_of(int signal_number) {
  const struct rlimit no_core {};
  ::setrlimit(RLIMIT_CORE, &no_core);  // SIGQUIT: the core would be of lrun, not of a worker
  ::signal(signal_number, SIG_DFL);
  const sigset_t only = signal_set({signal_number});
  ::raise(signal_number);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
  ::_exit(128 + signal_number);  // a signal whose default action does not end a process
}

/// Whether a shell is there that could continue us: some ancestor of our process group is of our session but not of our
/// group. The kernel ignores Ctrl-Z of a group without one (orphaned: `ssh -t host lrun`, `xterm -e lrun`), and so must
/// we. PID 1 cannot be stopped at all.
bool can_be_continued() {
  if (::getpid() == 1) return false;
  pid_t parent = ::getppid();
  while (parent > 1 && ::getsid(parent) == ::getsid(0)) {
    if (::getpgid(parent) != ::getpgrp()) return true;
    parent = parent_of(parent);
  }
  return false;
}

/// The launcher is told to stop the workers; the guard stops too, so that the shell takes the terminal back. It goes on
/// here when the shell says so.
void stop_with_the_job(pid_t launcher) {
  if (!can_be_continued()) return;
  ::kill(launcher, SIGTSTP);
  ::raise(SIGSTOP);
}

/// Queued, so that none is lost in another one that is pending; without room in the queue as any other signal.
void forward(pid_t launcher, int signal_number) {
  const bool is_state = signal_number == SIGCONT || signal_number == SIGWINCH;
  sigval number{};
  number.sival_int = signal_number;
  if (is_state || ::sigqueue(launcher, forwarded_signal(), number) != 0) ::kill(launcher, signal_number);
}

/// Waits for the launcher to end, forwarding everything else.
ExitStatus forward_until_end(pid_t launcher, const sigset_t& handled) {
  while (true) {
    siginfo_t info{};
    if (::sigwaitinfo(&handled, &info) < 0) continue;
    if (info.si_signo == SIGTSTP) {
      stop_with_the_job(launcher);
      continue;
    }
    if (info.si_signo != SIGCHLD) {
      forward(launcher, info.si_signo);
      continue;
    }
    siginfo_t ended{};
    if (::waitid(P_PID, static_cast<id_t>(launcher), &ended, WEXITED | WNOHANG) == 0 && ended.si_pid == launcher) {
      return ExitStatus::from_siginfo(ended);
    }
    reap_adopted(
        [launcher](pid_t pid) { return pid == launcher; });  // as PID 1 of a container we get strangers' orphans
  }
}

int end_what_is_left(const ExitStatus& status) {
  const bool in_order = status.kind == ExitStatus::Kind::kExited;
  const auto survivors = end_all_descendants(in_order ? kSecondLookLimit : kCleanUpLimit);
  if (in_order) return status.value;
  say(fmt::format("lrun: error: the launcher itself {}; {}\n", status.in_words(),
                  survivors.empty() ? "all workers were ended" : survivors_in_words(survivors)));
  return kLrunFailed;
}

}  // namespace

struct Guard::Page {
  std::atomic<bool> clean{false};
  std::atomic<int> signal_number{0};
};

Guard::Guard() : pid_(::getpid()) {
  void* memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  page_ = new (memory) Page;
}

Guard::~Guard() { ::munmap(page_, sizeof(Page)); }

bool Guard::has_died() const { return ::getppid() != pid_; }

void Guard::mark_end(int signal_number, bool clean) {
  page_->signal_number = signal_number;
  page_->clean = clean;
}

std::vector<int> handled_signals(const std::vector<int>& stop_signals) {
  std::set<int> wanted(stop_signals.begin(), stop_signals.end());
  wanted.insert({SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH});
  std::vector<int> handled;
  for (const int number : wanted) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) handled.push_back(number);
  }
  return handled;
}

int run_guarded(const std::vector<int>& stop_signals, const std::function<int(Guard&)>& launcher) {
  // Ignored SIGCHLD (inherited from who started us) means that children vanish unreaped, and nobody learns how they
  // ended.
  ::signal(SIGCHLD, SIG_DFL);
  Guard guard;
  std::vector<int> numbers = handled_signals(stop_signals);
  numbers.push_back(SIGCHLD);
  const sigset_t handled = signal_set(numbers);
  ::sigprocmask(SIG_BLOCK, &handled, nullptr);
  const sigset_t own = signal_set({guard_died_signal(), forwarded_signal()});
  ::sigprocmask(SIG_BLOCK, &own, nullptr);  // the launcher's from birth on

  become_subreaper();  // not inherited: the launcher asks for itself
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, guard_died_signal());
    if (guard.has_died()) ::_exit(kLrunFailed);  // the guard died before the death signal was armed
    ::setsid();
    ::prctl(PR_SET_NAME, kLauncherName);
    become_subreaper();
    ::_exit(launcher(guard));
  }
  const ExitStatus status = forward_until_end(child, handled);
  const int code = guard.page_->clean ? status.value : end_what_is_left(status);
  if (guard.page_->signal_number != 0) die_of(guard.page_->signal_number);
  return code;
}

}  // namespace lrun
