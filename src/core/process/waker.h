#pragma once

#include <sys/types.h>

#include <atomic>

#include "base/clock.h"
#include "base/duration.h"
#include "process/memory_folder.h"
#include "process/pidfd.h"
#include "process/run_cgroup.h"

namespace lrun::inline core {

/// Its name in ps(1).
inline constexpr const char* kWakerName = "rank-waker";

/// A process beside guard and launcher that sleeps until one of them is dead, and then continues the other until that
/// is dead, too. Guard and launcher clean up for each other, but not while they are stopped (SIGSTOP), and the kernel's
/// one signal (continue_signal.h) may come before the stop. Where one of the three is stopped and another killed, the
/// third is awake. In a job of several nodes the waker also continues the guard when the launcher is silent, because
/// then the guard has to end the workers (HeartbeatWatch). At last, when both are dead, it ends what is left in the
/// workers' cgroup and removes that and their folder in memory.
///
/// Only the destructor, which ends it, can wait for it: it is invisible to every ordinary wait of the guard. Without
/// pidfds (a kernel before 5.3) there is no waker.
class Waker {
 public:
  /// \param heartbeat  of a job of several nodes; 0: there is one node
  /// \param last       when the launcher's last heartbeat came; must outlive this object
  /// \param cgroup     of the workers; may be empty, as may their folder in memory
  Waker(pid_t guard, const PidFd& launcher, Duration heartbeat, const std::atomic<SteadyTime>& last,
        const RunCgroup& cgroup, const MemoryFolder& memory);
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  /// The sender of its SIGCONT; -1: there is no waker.
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

}  // namespace lrun::inline core
