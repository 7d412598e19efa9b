// In: signals to lrun, and the launcher as a function. Out: lrun's exit code, with no process left below it. Called by
// run/launch; here are both sides, the guard's loop and what the launcher sees of it.
#include "process/guard.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/own_signals.h"
#include "process/continue_signal.h"
#include "process/descendants.h"
#include "process/exit_codes.h"
#include "process/exit_status.h"
#include "process/fork_child.h"
#include "process/guard_death.h"
#include "process/launcher_heartbeat.h"
#include "process/pidfd.h"
#include "process/signal_set.h"
#include "process/waker.h"

namespace lrun::inline core {
namespace {

using namespace std::chrono_literals;

constexpr Duration kCleanUpLimit(5000);
constexpr Duration kSecondLookLimit(2000);  // the launcher had its own time before, and reported what is left
constexpr Duration kAnswerLimit(6000);      // longer than the launcher itself ever blocks
constexpr Duration kCleanerEndLimit(1000);
constexpr Duration kWorkersEndLimit(1000);  // a look through all processes of the machine takes some milliseconds
constexpr SteadyTime kNever = SteadyTime::max();

void say(const std::string& line) {
  const ssize_t ignored = ::write(STDERR_FILENO, line.data(), line.size());
  (void)ignored;
}

/// Whether there is a shell that could continue us: an ancestor in our session, but in another process group. The
/// kernel ignores Ctrl-Z in a group without one (orphaned: `ssh -t host lrun`, `xterm -e lrun`), and so must we. PID 1
/// cannot be stopped at all.
bool can_be_continued() {
  if (::getpid() == 1) return false;
  pid_t parent = ::getppid();
  while (parent > 1 && ::getsid(parent) == ::getsid(0)) {
    if (::getpgid(parent) != ::getpgrp()) return true;
    parent = parent_of(parent);
  }
  return false;
}

/// Has the launcher stop the workers, and stops the guard, too, so that the shell takes the terminal back. Returns when
/// the shell continues the guard.
void stop_with_the_job(pid_t launcher) {
  if (!can_be_continued()) return;
  ::kill(launcher, SIGTSTP);
  ::raise(SIGSTOP);
}

/// For `bg` while a worker reads the terminal. The kernel stops a background process that reads the terminal of its
/// session. The worker has a session of its own, and would take the keys that are typed for the shell. So the job stops
/// again, as any other would.
bool stop_for_terminal(pid_t launcher) {
  const pid_t foreground = ::tcgetpgrp(STDIN_FILENO);
  if (foreground <= 0 || foreground == ::getpgrp() || !can_be_continued()) return false;
  say("lrun: note: stopped: with '--stdin' rank 0 reads the terminal, which another job uses; 'fg' continues it\n");
  ::kill(launcher, SIGTSTP);
  ::signal(SIGTTIN, SIG_DFL);  // our parent may have ignored it; a guard that ran on would leave the workers stopped
  ::kill(0, SIGTTIN);
  return true;
}

/// Passes signals on to the launcher and notices when it does not read them: a file system or a terminal that does not
/// answer may hold it. The first request to end may wait. A second one, while the first is still unread, is carried out
/// by the guard.
class Forwarder {
 public:
  Forwarder(pid_t launcher, const std::atomic<int>& heard) : launcher_(launcher), heard_(heard) {}

  /// Queued, so that a pending one does not swallow the next; where the queue is full, as an ordinary signal.
  void forward(int signal_number) {
    const bool is_state = signal_number == SIGCONT || signal_number == SIGWINCH;
    sigval number{};
    number.sival_int = signal_number;
    if (is_state || ::sigqueue(launcher_, forwarded_signal(), number) != 0) {
      ::kill(launcher_, signal_number);
      return;
    }
    ++sent_;
    if (signal_number != SIGUSR1 && signal_number != SIGUSR2) may_end_ = true;
    if (signal_number != SIGINT && signal_number != SIGTERM && signal_number != SIGQUIT) return;
    if (!is_unread()) {
      asked_ = sent_;
      deadline_ = kNever;
    } else if (deadline_ == kNever) {
      deadline_ = steady_now() + kAnswerLimit;
    }
  }

  /// A signal was sent that may end the run, which must not be stopped any more.
  [[nodiscard]] bool may_end() const { return may_end_; }

  /// When is_unresponsive() may be true.
  [[nodiscard]] SteadyTime deadline() const { return is_unread() ? deadline_ : kNever; }
  /// The launcher has not read in time.
  bool is_unresponsive() {
    if (!is_unread()) deadline_ = kNever;
    return steady_now() >= deadline_;
  }

 private:
  [[nodiscard]] bool is_unread() const { return heard_ < asked_; }

  pid_t launcher_;
  const std::atomic<int>& heard_;  ///< the number of signals that the launcher has read
  int sent_ = 0;
  bool may_end_ = false;
  int asked_ = 0;  ///< the number of the first request to end since the launcher last read all; 0: none
  SteadyTime deadline_ = kNever;
};

/// Ends the workers of a launcher that has lost its place in a job of several nodes (HeartbeatWatch).
class PlaceWatch {
 public:
  PlaceWatch(Duration heartbeat, const std::atomic<SteadyTime>& last, std::atomic<bool>& ends, std::atomic<bool>& ended,
             const RunCgroup& cgroup)
      : last_(last), ends_(ends), ended_(ended), cgroup_(cgroup) {
    if (heartbeat > Duration::zero()) watch_.emplace(heartbeat);
  }

  [[nodiscard]] SteadyTime due() const { return watch_ ? watch_->due() : kNever; }

  /// \return false when the launcher has lost its place and what is below it cannot be ended.
  bool look() {
    const SteadyTime now = steady_now();
    const SteadyTime last = last_;
    if (now < due() || !watch_->look(last == SteadyTime() ? now : last, now)) return true;
    // A launcher that is continued in between says so before it waits for this to be over, and begins its workers.
    ends_ = true;
    const bool is_silent = last_.load() == last;
    if (is_silent) {
      ended_ = true;
      cgroup_.kill();
    }
    const bool may_end = !is_silent || kill_below_children();
    ends_ = false;
    return may_end;
  }

 private:
  std::optional<HeartbeatWatch> watch_;
  const std::atomic<SteadyTime>& last_;  ///< when the last heartbeat came
  std::atomic<bool>& ends_;
  std::atomic<bool>& ended_;
  const RunCgroup& cgroup_;
};

/// The next of `handled`; empty at `deadline`, or when the wait was interrupted.
std::optional<siginfo_t> next_signal(const sigset_t& handled, SteadyTime deadline) {
  siginfo_t info{};
  if (deadline == kNever) return ::sigwaitinfo(&handled, &info) > 0 ? std::optional(info) : std::nullopt;
  const auto left = std::max(deadline - steady_now(), SteadyTime::duration::zero());
  const timespec wait{left / 1s, left % 1s / 1ns};
  return ::sigtimedwait(&handled, &info, &wait) > 0 ? std::optional(info) : std::nullopt;
}

struct Watched {
  PidFd launcher;
  pid_t waker = 0;
  bool reads_terminal = false;
  std::function<void()> receive;  ///< reads the descriptors that the launcher sends
};

/// Waits for the launcher to end, and forwards signals meanwhile. \return nothing when it has to be ended: it does not
/// read its signals, or is silent and its workers cannot be ended without it.
std::optional<ExitStatus> forward_until_end(Watched watched, const sigset_t& handled, Forwarder forwarder,
                                            PlaceWatch place) {
  const pid_t launcher = watched.launcher.pid();
  while (true) {
    const std::optional<siginfo_t> next = next_signal(handled, std::min(forwarder.deadline(), place.due()));
    if (forwarder.is_unresponsive() || !place.look()) return std::nullopt;
    if (!next) continue;
    const siginfo_t& info = *next;
    if (info.si_signo == SIGTSTP) {
      stop_with_the_job(launcher);
      continue;
    }
    const bool is_ours = info.si_code > 0 || info.si_pid == watched.waker || info.si_pid == launcher;
    const bool is_for_guard = info.si_signo == SIGCONT && is_ours;
    if (info.si_signo == SIGCHLD || is_for_guard) {  // the end of a traced launcher may come without SIGCHLD
      if (const std::optional<ExitStatus> status = watched.launcher.try_wait()) return status;
      reap_adopted([launcher](pid_t pid) { return pid == launcher; });  // PID 1 also gets orphans of others
      continue;
    }
    if (info.si_signo == SIGCONT && watched.reads_terminal && !forwarder.may_end() && stop_for_terminal(launcher)) {
      continue;
    }
    if (info.si_signo == forwarded_signal()) {
      watched.receive();
      continue;
    }
    forwarder.forward(info.si_signo);
  }
}

std::string survivors_or_none(const std::vector<pid_t>& survivors) {
  return survivors.empty() ? "all workers were ended" : survivors_text(survivors);
}

/// The terminal as it was when lrun began: a launcher that is killed while a debugged rank has it leaves it raw.
class TerminalSettings {
 public:
  TerminalSettings() : known_(::tcgetattr(STDIN_FILENO, &settings_) == 0) {}

  void restore() const {
    if (!known_) return;
    const sigset_t background = signal_set({SIGTTOU});  // would stop a guard that is not in the foreground
    sigset_t before;
    ::sigprocmask(SIG_BLOCK, &background, &before);
    (void)::tcsetattr(STDIN_FILENO, TCSANOW, &settings_);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
  }

 private:
  termios settings_{};
  bool known_;
};

int end_unresponsive_launcher(const RunCgroup& cgroup) {
  const auto survivors = end_all_descendants(kCleanUpLimit, cgroup);
  say(fmt::format("lrun: error: lrun itself did not answer and was killed; {}\n", survivors_or_none(survivors)));
  return kExitRefused;
}

int end_what_is_left(const ExitStatus& status, const RunCgroup& cgroup) {
  const bool in_order = status.kind == ExitStatus::Kind::kExited;
  const auto survivors = end_all_descendants(in_order ? kSecondLookLimit : kCleanUpLimit, cgroup);
  if (in_order) return status.value;
  say(fmt::format("lrun: error: lrun itself {}; {}\n", status.text(), survivors_or_none(survivors)));
  return kExitRefused;
}

/// \param status  of the launcher; empty when it did not answer.
int end_behind_launcher(const std::optional<ExitStatus>& status, bool clean, const RunCgroup& cgroup) {
  if (!status) return end_unresponsive_launcher(cgroup);
  return clean ? status->value : end_what_is_left(*status, cgroup);
}

/// In a process of its own: it may take longer than a signal or a heartbeat may wait. Empty: nothing is to be removed.
std::optional<PidFd> remove_abandoned_memory(const MemoryFolder& memory) {
  if (!memory.has_abandoned()) return std::nullopt;
  const auto remove = [&memory] {
    memory.remove_abandoned();
    return 0;
  };
  return fork_child({.function = remove}).child;
}

/// A later run removes the rest. Without a pidfd its number may be another's by now.
void end_cleaner(const PidFd& cleaner) {
  if (cleaner.poll_fd() < 0 || !cleaner.signal(SIGKILL)) return;
  (void)cleaner.wait_until_ended(kCleanerEndLimit);
}

/// Both processes have the cgroup and the folder in memory; the last one removes them. A guard that was stopped in its
/// first moments, before it asked the kernel to continue it and had a waker, is continued from here.
[[noreturn]] void leave_as_launcher(int code, const Guard& guard) {
  if (guard.has_died()) {
    guard.cgroup().remove();
    guard.memory().remove();
  } else {
    ::kill(guard.pid(), SIGCONT);
  }
  ::_exit(code);
}

}  // namespace

struct Guard::Page {
  std::atomic<bool> clean{false};
  std::atomic<int> signal_number{0};
  std::atomic<int> heard{0};
  std::atomic<SteadyTime> heartbeat{};    ///< when the last one came; the epoch: none yet
  std::atomic<bool> ends_workers{false};  ///< the guard, at the moment
  std::atomic<bool> ended_workers{false};
};

Guard::Guard(RunGuardOptions options, pid_t pid)
    : pid_(pid), cgroup_(std::move(options.cgroup)), memory_(std::move(options.memory)) {
  if (options.heartbeat > Duration::zero()) held_.emplace();
  void* memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  page_ = new (memory) Page;
}

Guard::~Guard() { ::munmap(page_, sizeof(Page)); }

void Guard::note_heard() const { ++page_->heard; }

void Guard::note_heartbeat() const { page_->heartbeat = steady_now(); }

void Guard::begin_workers() const {
  constexpr auto kLook = 1ms;
  note_heartbeat();
  const SteadyTime limit = steady_now() + kWorkersEndLimit;
  while (page_->ends_workers && steady_now() < limit && !has_died()) std::this_thread::sleep_for(kLook);
  if (!page_->ends_workers) page_->ended_workers = false;  // else the new ones may be ended, too
}

bool Guard::has_ended_workers() const { return page_->ended_workers; }

bool Guard::has_died() const { return ::getppid() != pid_; }

/// forwarded_signal() wakes the guard: there is a descriptor to receive.
void Guard::hold(int connection) const {
  if (held_ && !has_died() && held_->send(connection)) ::kill(pid_, forwarded_signal());
}

void Guard::mark_end(int signal_number, bool clean) {
  page_->signal_number = signal_number;
  page_->clean = clean;
}

std::vector<int> handled_signals(const std::vector<int>& stop_signals) {
  std::vector<int> wanted = stop_signals;
  wanted.insert(wanted.end(), {SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH});
  return without_ignored(std::move(wanted));
}

int run_guarded(const std::vector<int>& stop_signals, const std::function<int(Guard&)>& launcher,
                RunGuardOptions options) {
  const bool reads_terminal = options.reads_terminal;
  const Duration heartbeat = options.heartbeat;
  // Where SIGCHLD is ignored, which may be inherited, the kernel reaps children by itself, and their status is lost.
  ::signal(SIGCHLD, SIG_DFL);
  Guard guard(std::move(options), ::getpid());
  const TerminalSettings terminal;
  std::vector<int> numbers = handled_signals(stop_signals);
  numbers.insert(numbers.end(), {SIGCHLD, forwarded_signal()});
  const sigset_t handled = signal_set(numbers);
  ::sigprocmask(SIG_BLOCK, &handled, nullptr);
  const sigset_t own = signal_set({guard_died_signal()});
  ::sigprocmask(SIG_BLOCK, &own, nullptr);  // and forwarded_signal(): the launcher's from birth on

  become_subreaper();       // not inherited: the launcher does the same
  Pipe pipe = make_pipe();  // each process has one end of it
  const pid_t child = ::fork();
  if (child < 0) {
    const int error = errno;
    guard.cgroup().remove();
    guard.memory().remove();
    throw std::system_error(error, std::generic_category(), "fork");
  }
  if (child == 0) {
    note_cgroup(guard.cgroup().fd());
    pipe.read.reset();
    continue_at_end_of(pipe.write.get());
    watch_for_death_of(guard.pid());
    if (guard.has_died()) leave_as_launcher(kExitRefused, guard);  // the guard died before the death signal was armed
    ::setsid();
    ::prctl(PR_SET_NAME, kLauncherName);
    become_subreaper();
    leave_as_launcher(launcher(guard), guard);
  }
  pipe.write.reset();
  continue_at_end_of(pipe.read.get());
  PidFd process = PidFd::of_child(child);
  std::optional<Waker> waker(std::in_place, guard.pid(), process, heartbeat, guard.page_->heartbeat, guard.cgroup(),
                             guard.memory());
  const std::optional<PidFd> cleaner = remove_abandoned_memory(guard.memory());
  Fd held;
  const auto receive = [&] {
    if (guard.held_) guard.held_->receive(held);
  };
  const std::optional<ExitStatus> status = forward_until_end(
      {std::move(process), waker->pid(), reads_terminal, receive}, handled, Forwarder(child, guard.page_->heard),
      PlaceWatch(heartbeat, guard.page_->heartbeat, guard.page_->ends_workers, guard.page_->ended_workers,
                 guard.cgroup()));
  if (!status || status->kind != ExitStatus::Kind::kExited) terminal.restore();
  const int code = end_behind_launcher(status, guard.page_->clean, guard.cgroup());
  guard.cgroup().remove();
  held.reset();  // before what may take its time
  if (cleaner) end_cleaner(*cleaner);
  guard.memory().remove();
  waker.reset();
  if (status && guard.page_->signal_number != 0) die_of(guard.page_->signal_number);
  return code;
}

}  // namespace lrun::inline core
