#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/duration.h"
#include "base/fd.h"
#include "process/exit_status.h"

namespace lrun::inline core {

/// A handle on one direct child that cannot name any other process.
///
/// Where there are no pidfds (a kernel before 5.4, a seccomp filter, LRUN_NO_PIDFD=1) it works through kill() and
/// waitid() with the pid, which is the child's as long as only this object reaps it. SIGCHLD then reports its end.
///
/// A pid can be reused the moment its child is reaped; a pidfd cannot, so a late signal is refused rather than sent to
/// another process. The descriptor turns readable when the child exits, so it sits in the event loop beside the log
/// pipes. The destructor neither kills nor reaps: its owner decides. One thread.
class PidFd {
 public:
  /// `fd` came with the child from clone(CLONE_PIDFD), so that it cannot be another's. Empty: there is none.
  PidFd(pid_t pid, Fd fd) noexcept : pid_(pid), fd_(std::move(fd)) {}

  /// Of a child that only this object reaps. Without a pidfd on kernels that have none.
  static PidFd of_child(pid_t pid);

  /// -1 without a pidfd.
  [[nodiscard]] int poll_fd() const noexcept { return fd_.get(); }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// Signals the process. \return false once it is reaped, or when it changed its user and may not be signalled; a
  /// zombie swallows the signal and gives true.
  bool signal(int signal_number) const;

  /// Signals the child's process group, which it leads: only while the leader is unreaped, so the group id is ours.
  /// \return false once the leader is reaped or when the group is empty.
  bool signal_group(int signal_number) const;

  /// True once the child has ended, reaped or not, and also where a tracer keeps it from being reaped.
  [[nodiscard]] bool has_ended() const;

  /// How the child has ended, reaped or not; empty while it runs.
  [[nodiscard]] std::optional<ExitStatus> ending() const;

  /// Reaps without blocking. Empty while the child runs; the same status on every later call. A child that a tracer
  /// holds (tracer.h) is left to the reaping of orphans; its status comes from /proc.
  /// \throws std::system_error  ECHILD if something else reaped the child.
  std::optional<ExitStatus> try_wait();

  /// Blocks until the child has ended, reaped or not, or the limit is over. \return it has ended.
  [[nodiscard]] bool wait_until_ended(Duration limit) const;

  [[nodiscard]] const std::optional<ExitStatus>& status() const { return status_; }
  /// After its end: the most memory that it had at one time, or that one of the children that it has waited for had.
  /// -1: not known. A program that is smaller than lrun has lrun's, from the moment before it was executed.
  [[nodiscard]] std::int64_t peak_memory_kib() const { return peak_memory_kib_; }
  /// Whether a tracer kept it from being reaped when try_wait() reported its end.
  [[nodiscard]] bool was_held() const { return was_held_; }

 private:
  pid_t pid_;
  Fd fd_;
  std::optional<ExitStatus> status_;
  std::int64_t peak_memory_kib_ = -1;
  bool was_held_ = false;
};

}  // namespace lrun::inline core
