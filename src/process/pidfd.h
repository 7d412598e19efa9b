#pragma once

#include <sys/types.h>

#include <optional>

#include "base/fd.h"
#include "process/exit_status.h"

namespace lrun {

/// A handle on one direct child that cannot name any other process.
///
/// A pid can be reused the moment its child is reaped; a pidfd cannot, so a late signal is refused rather than sent to
/// a stranger. The descriptor turns readable when the child exits, so it sits in the event loop beside the log pipes.
/// The destructor neither kills nor reaps: who outlives whom is WorkerGroup's decision. One thread.
class PidFd {
 public:
  /// `fd` came with the child from clone(CLONE_PIDFD): no child can die unseen or be mistaken.
  PidFd(pid_t pid, Fd fd) noexcept : pid_(pid), fd_(std::move(fd)) {}

  [[nodiscard]] int poll_fd() const noexcept { return fd_.get(); }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// Signals the process. \return false once it is reaped, or when it changed its user and may not be signalled; a
  /// zombie swallows the signal and gives true.
  bool signal(int signal_number) const;

  /// Signals the child's process group, which it leads: only while the leader is unreaped, so the group id is ours.
  /// \return false once the leader is reaped or when the group is empty.
  bool signal_group(int signal_number) const;

  /// True once the child has ended, reaped or not.
  [[nodiscard]] bool has_ended() const;

  /// Reaps without blocking. Empty while the child runs; the same status on every later call.
  /// \throws std::system_error  ECHILD if something else reaped the child.
  std::optional<ExitStatus> try_wait();

  [[nodiscard]] const std::optional<ExitStatus>& status() const { return status_; }

 private:
  pid_t pid_;
  Fd fd_;
  std::optional<ExitStatus> status_;
};

}  // namespace lrun
