// In: a program, its arguments and descriptors. Out: a child that executes it, or the errno of clone or exec. Called by
// WorkerGroup for every worker: 64 of them must start as fast as 64 bare clones.
#include "process/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>

#include "process/clone_into_cgroup.h"
#include "process/signal_set.h"

#if defined(__SANITIZE_ADDRESS__)
#define LRUN_NO_SANITIZE __attribute__((no_sanitize("address")))
#else
#define LRUN_NO_SANITIZE
#endif

namespace lrun::inline core {
namespace {

/// The error that kept a child from running its program.
struct ChildError {
  int number = 0;
  bool in_exec = true;
};

struct ChildTask {
  const SpawnRequest* request;
  const SpawnDefaults* defaults;
  pid_t parent;
  int error_number = 0;
  bool in_exec = true;  ///< where the error came from
  int error_pipe = -1;  ///< where the errno goes, too; -1: nowhere
  bool began = false;   ///< the child reached its first instruction
};

constexpr int kFirstFreeDescriptor = 3;

void bind_to_cpus(ChildTask& task) {
  const SpawnRequest& request = *task.request;
  if (request.cpus == nullptr || ::sched_setaffinity(0, request.cpus_bytes, request.cpus) == 0) return;
  task.error_number = errno;
  task.in_exec = false;
  ::_exit(127);
}

/// Puts `from` on descriptor `to` for the program. dup2 onto itself would keep CLOEXEC, so the flag is cleared then.
bool place_descriptor(int from, int to) {
  if (from == to) return ::fcntl(to, F_SETFD, 0) == 0;
  return ::dup2(from, to) == to;
}

/// Moves a source out of the way of the descriptors 0, 1, 2 that are about to be overwritten.
int clear_of_standard(int fd, int target) {
  if (fd >= kFirstFreeDescriptor || fd == target) return fd;
  return ::fcntl(fd, F_DUPFD_CLOEXEC, kFirstFreeDescriptor);
}

bool place_standard_streams(const SpawnRequest& request) {
  const int in = clear_of_standard(request.standard_input, 0);
  const int out = clear_of_standard(request.standard_output, 1);
  const int err = clear_of_standard(request.standard_error, 2);
  return in >= 0 && out >= 0 && err >= 0 && place_descriptor(in, 0) && place_descriptor(out, 1) &&
         place_descriptor(err, 2);
}

bool set_limits(const SpawnRequest& request) {
  for (const ProcessLimit& limit : request.limits) {
    if (::setrlimit(static_cast<__rlimit_resource_t>(limit.resource), &limit.value) != 0) return false;
  }
  return true;
}

/// One that stands in the place of another is copied away first. Others are not: the limit of open files may be
/// reached.
bool place_extras(std::span<const int> extras) {
  std::array<int, kMostExtras> from{};
  const int beyond = kExtraDescriptor + static_cast<int>(kMostExtras);
  for (std::size_t i = 0; i < extras.size(); ++i) {
    const bool is_in_the_way = extras[i] < beyond && extras[i] != kExtraDescriptor + static_cast<int>(i);
    from.at(i) = is_in_the_way ? ::fcntl(extras[i], F_DUPFD_CLOEXEC, beyond) : extras[i];
  }
  bool placed = true;
  for (std::size_t i = 0; i < extras.size(); ++i) {
    placed = place_descriptor(from.at(i), kExtraDescriptor + static_cast<int>(i)) && placed;
  }
  return placed;
}

/// The child leads a session that has none yet.
bool take_terminal(const SpawnRequest& request) { return !request.own_terminal || ::ioctl(0, TIOCSCTTY, 0) == 0; }

bool enter_folder(const char* folder) { return folder == nullptr || ::chdir(folder) == 0; }

/// Runs in the child, in the parent's memory, while the parent sleeps: async-signal-safe calls only.
LRUN_NO_SANITIZE int child_main(void* argument) {
  auto* task = static_cast<ChildTask*>(argument);
  task->began = true;
  bind_to_cpus(*task);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Where Yama lets only ancestors look at a process, the launcher's helpers may look at its workers, too.
  ::prctl(PR_SET_PTRACER, task->parent);
  ::setsid();
  if (::getppid() != task->parent) ::_exit(127);  // the launcher died before the death signal was armed
  task->defaults->restore();
  if (place_standard_streams(*task->request) && take_terminal(*task->request) && enter_folder(task->request->folder) &&
      set_limits(*task->request)) {
    // Workers must not inherit what lrun inherited without CLOEXEC. Since Linux 5.11; before, it stays open.
    ::syscall(SYS_close_range, kFirstFreeDescriptor, ~0U, CLOSE_RANGE_CLOEXEC);
    if (place_extras(task->request->extras)) {
      sigset_t none;
      ::sigemptyset(&none);
      ::sigprocmask(SIG_SETMASK, &none, nullptr);
      ::execve(task->request->path, task->request->argv, task->request->envp);
    }
  }
  task->error_number = errno;
  const ChildError error{task->error_number, task->in_exec};
  if (task->error_pipe >= 0) (void)!::write(task->error_pipe, &error, sizeof error);
  ::_exit(127);
}

/// Brings an errno from the child; at the end of the pipe it has executed its program.
class ErrorPipe {
 public:
  /// \return the end for the child, or -1: then errors come through the shared memory alone.
  int open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
    read_ = Fd(ends[0]);
    write_ = Fd(ends[1]);
    return write_.get();
  }
  /// Waits for the exec. \return number 0 when all went well.
  ChildError read() {
    ChildError error;
    if (!read_) return error;
    write_.reset();
    const bool whole = ::read(read_.get(), &error, sizeof error) == static_cast<ssize_t>(sizeof error);
    return whole ? error : ChildError{};
  }

 private:
  Fd read_;
  Fd write_;
};

/// From 6.14 on Linux kills a process at birth whose cgroup was killed more, or less, often than that of its parent.
/// \return -1 also then: the child has to be started outside of that cgroup.
pid_t clone_in_cgroup(ChildTask& task, std::span<char> stack, int flags, int& pidfd) {
  const pid_t pid = clone_into_cgroup(child_main, stack, flags, &task, pidfd, task.request->cgroup);
  if (pid < 0 || task.began) return pid;
  ::waitid(P_PID, static_cast<id_t>(pid), nullptr, WEXITED);
  ::close(std::exchange(pidfd, -1));
  return -1;
}

}  // namespace

std::vector<char*> argument_pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

SpawnDefaults SpawnDefaults::of_this_process() {
  SpawnDefaults defaults;
  ::getrlimit(RLIMIT_NOFILE, &defaults.file_limit);
  defaults.pipe_signal_ignored = is_ignored(SIGPIPE);
  const char* const no_pidfds = std::getenv("LRUN_NO_PIDFD");
  defaults.use_pidfds = no_pidfds == nullptr || std::string_view(no_pidfds) != "1";
  defaults.file_size_signal_ignored = is_ignored(SIGXFSZ);
  return defaults;
}

void SpawnDefaults::restore() const {
  ::setrlimit(RLIMIT_NOFILE, &file_limit);
  // exec resets handlers but keeps what is ignored, and lrun ignores these two for itself.
  if (!pipe_signal_ignored) ::signal(SIGPIPE, SIG_DFL);
  if (!file_size_signal_ignored) ::signal(SIGXFSZ, SIG_DFL);
}

SpawnResult spawn(const SpawnRequest& request, const SpawnDefaults& defaults) {
  constexpr std::size_t kStackBytes = 64 * 1024;
  alignas(64) static std::array<char, kStackBytes> stack;  // one caller thread, asleep while the child uses it
  ChildTask task{&request, &defaults, ::getpid()};

  // No signal may run a handler in the child while it shares our memory.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  int pidfd = -1;
  pid_t pid = -1;
  constexpr int kShared = CLONE_VM | CLONE_VFORK;
  constexpr int kFlags = kShared | SIGCHLD;
  if (defaults.use_pidfds && request.cgroup >= 0) pid = clone_in_cgroup(task, stack, kShared, pidfd);
  if (defaults.use_pidfds && pid < 0)
    pid = ::clone(child_main, stack.data() + stack.size(), kFlags | CLONE_PIDFD, &task, &pidfd);
  ErrorPipe errors;
  if (!defaults.use_pidfds || (pid < 0 && errno == EINVAL)) {
    task.error_pipe = errors.open();
    pid = ::clone(child_main, stack.data() + stack.size(), kFlags, &task);
  }
  const int clone_error = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid > 0 && task.error_number == 0) {
    const ChildError error = errors.read();
    task.error_number = error.number;
    if (error.number != 0) task.in_exec = error.in_exec;
  }

  SpawnResult result;
  if (pid < 0) {
    result.error_number = clone_error;
    return result;
  }
  PidFd child(pid, Fd(pidfd));
  if (task.error_number != 0) {
    result.error_number = task.error_number;
    result.exec_failed = task.in_exec;
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED);  // it is past its _exit: no wait worth a deadline
    return result;
  }
  result.child.emplace(std::move(child));
  return result;
}

}  // namespace lrun::inline core
