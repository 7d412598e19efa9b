// In: the ranks to start and this process's signals. Out: the outcome of the launch, once the forked supervisor has
// ended. Called by launch().
#include "runtime/launch/supervised_launch.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

#include "base/own_signals.h"
#include "process/continue_signal.h"
#include "process/descendants.h"
#include "process/guard.h"
#include "process/guard_death.h"
#include "process/signal_set.h"

namespace lrun::detail {
namespace {

/// Blocks the signals that end a process, for this thread and this scope, and reads them.
class HeldSignals {
 public:
  HeldSignals() {
    ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
    fd_ = Fd(::signalfd(-1, &held_, SFD_CLOEXEC | SFD_NONBLOCK));
    const int error = errno;
    if (fd_) return;
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    throw std::system_error(error, std::generic_category(), "signalfd");
  }
  ~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// 0: none has come.
  [[nodiscard]] int read_one() const {
    signalfd_siginfo info{};
    const bool came = ::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info);
    return came ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  const sigset_t held_ = signal_set(without_ignored({SIGINT, SIGTERM, SIGHUP, SIGQUIT}));
  sigset_t before_{};
  Fd fd_;
};

/// While it lives, Ctrl-Z (SIGTSTP) stops the ranks before this process, and they continue with it. A handler and no
/// signalfd, because the kernel may give the signal to any thread. If the program ignores or handles it, it stays so.
///
/// When this ends, a handler may still run in another thread, or be about to. It is waited for as long as it may use
/// the supervisor's pid, which may be another process's afterwards; only then the signal gets its old action for good.
class SharedSuspension {
 public:
  explicit SharedSuspension(pid_t supervisor) {
    struct sigaction before {};
    ::sigaction(SIGTSTP, nullptr, &before);
    if (before.sa_handler != SIG_DFL) return;
    supervisor_ = supervisor;
    ours_ = handle();
  }
  ~SharedSuspension() {
    if (!ours_) return;
    supervisor_ = 0;
    while (handlers_ > 0) ::poll(nullptr, 0, 1);
    give_up();
  }
  SharedSuspension(const SharedSuspension&) = delete;
  SharedSuspension& operator=(const SharedSuspension&) = delete;

 private:
  static bool handle() {
    struct sigaction action {};
    action.sa_handler = stop_with_ranks;
    action.sa_flags = SA_RESTART;
    return ::sigaction(SIGTSTP, &action, nullptr) == 0;
  }

  static void stop_with_ranks(int) {
    const int error = errno;
    ++handlers_;  // before the pid is read: so either it is 0, or the destructor sees this handler
    if (const pid_t supervisor = supervisor_; supervisor != 0) {
      ::kill(supervisor, SIGTSTP);
      stop_here();
      handle();
      ::kill(supervisor, SIGCONT);
    } else {
      give_up();
      ::raise(SIGTSTP);  // comes when this handler returns
    }
    --handlers_;
    errno = error;
  }

  /// Back to the default action, which was there before; not if the program has set another one since.
  static void give_up() {
    struct sigaction now {};
    ::sigaction(SIGTSTP, nullptr, &now);
    if (now.sa_handler != stop_with_ranks) return;
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    ::sigaction(SIGTSTP, &standard, nullptr);
  }

  /// The default action decides whether to stop: the kernel ignores the signal where no shell could continue us.
  static void stop_here() {
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    ::sigaction(SIGTSTP, &standard, nullptr);
    const sigset_t only = signal_set({SIGTSTP});
    sigset_t before;
    ::raise(SIGTSTP);
    ::pthread_sigmask(SIG_UNBLOCK, &only, &before);  // stands still here
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  static inline std::atomic<pid_t> supervisor_ = 0;  // 0: none lives
  static inline std::atomic<int> handlers_ = 0;      // that run
  bool ours_ = false;
};

/// The life of the supervisor, in a fork of a process that may have other threads: its code takes no lock of theirs but
/// the allocator's, which supports forks.
[[noreturn]] void supervise(const LaunchBoard& board, pid_t parent, Pipe& report,
                            const std::function<RankOrder(pid_t)>& order_for) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::signal(SIGCHLD, SIG_DFL);  // if it were ignored, ends of ranks would go unseen
  watch_for_death_of(parent);
  report.read.reset();
  continue_at_end_of(report.write.get());  // if it were stopped, it would not get the death signal
  if (::getppid() != parent) ::_exit(1);   // it died before its death signal was armed
  ::setsid();
  ::prctl(PR_SET_NAME, kLauncherName);
  become_subreaper();
  try {
    RankSupervisor supervisor(order_for(::getpid()), board, parent);
    (void)write_all(report.write.get(), supervisor.run().text());
    ::_exit(0);
  } catch (const std::exception& error) {
    (void)write_all(STDERR_FILENO, std::string("lrun: error: launch: ") + error.what() + "\n");
    ::_exit(1);
  }
}

/// Reads until the supervisor has ended. \return its report, and the last signal that came meanwhile.
std::pair<std::string, int> hear(const Fd& report, const HeldSignals& signals, pid_t supervisor) {
  std::string text;
  int last_signal = 0;
  while (true) {
    std::array<pollfd, 2> ready{pollfd{report.get(), POLLIN, 0}, pollfd{signals.fd(), POLLIN, 0}};
    if (::poll(ready.data(), ready.size(), -1) < 0) continue;  // a handler of the program's ran
    if (const int number = signals.read_one(); number != 0) {
      last_signal = number;
      ::kill(supervisor, number);  // ours until we reap it
    }
    if (ready[0].revents == 0) continue;
    std::array<char, 4096> buffer;
    const ssize_t count = ::read(report.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return {text, last_signal};
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

void reap(pid_t supervisor) {
  while (::waitpid(supervisor, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

SupervisedEnd run_supervised(const LaunchBoard& board, const std::function<RankOrder(pid_t)>& order_for) {
  Pipe report = make_pipe();
  const HeldSignals signals;
  const pid_t parent = ::getpid();
  const pid_t supervisor = ::fork();
  if (supervisor < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (supervisor == 0) supervise(board, parent, report, order_for);
  report.write.reset();
  auto [text, signal_number] = [&] {
    const SharedSuspension suspension(supervisor);
    return hear(report.read, signals, supervisor);
  }();
  reap(supervisor);
  LaunchEnd killed;
  killed.end.kind = RunEnd::Kind::kLauncherFailed;
  return {LaunchEnd::parse(text).value_or(std::move(killed)), signal_number};
}

void act_on_signal(int signal_number) {
  if (signal_number != 0) ::raise(signal_number);
}

}  // namespace lrun::detail
