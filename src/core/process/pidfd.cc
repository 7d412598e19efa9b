#include "process/pidfd.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <system_error>

#include "process/tracer.h"

namespace lrun::inline core {
namespace {

/// The call does not exist here, or a filter forbids it; a child that may not be signalled is refused by kill() as
/// well.
bool lacks_pidfds(int error) { return error == ENOSYS || error == EPERM || error == EINVAL || error == EBADF; }

// P_PIDFD is newer than the enumeration of old headers; the kernel has it since 5.4.
constexpr auto kPidFd = static_cast<idtype_t>(3);

/// The raw call also tells what the child used; libc's does not.
int wait_by(idtype_t by, int number, siginfo_t& info, int options, rusage* used) {
  return static_cast<int>(::syscall(SYS_waitid, by, number, &info, options, used));
}

int wait_for(int fd, pid_t pid, siginfo_t& info, int options, rusage* used = nullptr) {
  if (fd >= 0 && wait_by(kPidFd, fd, info, options, used) == 0) return 0;
  if (fd >= 0 && !lacks_pidfds(errno)) return -1;
  return wait_by(P_PID, pid, info, options, used);
}

}  // namespace

PidFd PidFd::of_child(pid_t pid) { return {pid, Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)))}; }

bool PidFd::signal(int signal_number) const {
  if (status_) return false;
  // glibc 2.36 declares pidfd_send_signal without C linkage guards, hence the raw call.
  if (fd_ && ::syscall(SYS_pidfd_send_signal, fd_.get(), signal_number, nullptr, 0) == 0) return true;
  return (!fd_ || lacks_pidfds(errno)) && ::kill(pid_, signal_number) == 0;
}

bool PidFd::signal_group(int signal_number) const {
  if (status_) return false;
  return ::kill(-pid_, signal_number) == 0;
}

bool PidFd::has_ended() const { return ending().has_value(); }

std::optional<ExitStatus> PidFd::ending() const {
  if (status_) return status_;
  siginfo_t info{};
  if (wait_for(fd_.get(), pid_, info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
    return ExitStatus::from_siginfo(info);
  }
  const bool is_held = fd_ ? wait_until_ended(Duration::zero()) : is_dead(pid_);
  return is_held ? std::optional(status_of_dead(pid_)) : std::nullopt;
}

std::optional<ExitStatus> PidFd::try_wait() {
  if (status_) return status_;
  siginfo_t info{};
  rusage used{};
  const auto reap = [&] {
    if (wait_for(fd_.get(), pid_, info, WEXITED | WNOHANG, &used) == 0) return info.si_pid != 0;
    throw std::system_error(errno, std::generic_category(), "waitid");
  };
  if (!reap()) {
    if (!has_ended()) return std::nullopt;
    was_held_ = !reap();  // else it ended between the two questions
    if (was_held_) status_ = status_of_dead(pid_);
  }
  if (status_) return status_;
  status_ = ExitStatus::from_siginfo(info);
  peak_memory_kib_ = used.ru_maxrss;
  return status_;
}

bool PidFd::wait_until_ended(Duration limit) const {
  if (fd_) {
    pollfd ended{fd_.get(), POLLIN, 0};
    return ::poll(&ended, 1, static_cast<int>(limit.count())) > 0;
  }
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!has_ended()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    const timespec moment{0, 1'000'000};
    ::nanosleep(&moment, nullptr);
  }
  return true;
}

}  // namespace lrun::inline core
