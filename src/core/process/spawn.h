#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "process/pidfd.h"
#include "process/process_limits.h"

namespace lrun::inline core {

/// Settings that the launcher changed for itself and a child gets back: limits and ignored signals are those that lrun
/// was started with (so `nohup` reaches the workers as without lrun). No signal is blocked in a worker, even if lrun
/// inherited it so: SIGTERM would have no effect.
struct SpawnDefaults {
  struct rlimit file_limit {};
  bool pipe_signal_ignored = false;       ///< SIGPIPE
  bool file_size_signal_ignored = false;  ///< SIGXFSZ
  bool use_pidfds = true;                 ///< false with LRUN_NO_PIDFD=1

  /// Taken from this process before it changes anything.
  static SpawnDefaults of_this_process();
  /// Sets limit and signals of the calling process, a child that is about to execute its program. Async-signal-safe.
  void restore() const;
};

/// One child to start. Pointers must stay valid during the call; `argv` and `envp` end with nullptr.
struct SpawnRequest {
  const char* path = nullptr;
  char* const* argv = nullptr;
  char* const* envp = nullptr;
  int standard_input = 0;
  int standard_output = 1;
  int standard_error = 2;
  bool own_terminal = false;               ///< standard input is a terminal and becomes the child's controlling one
  const char* folder = nullptr;            ///< to start in; nullptr: the parent's
  std::span<const ProcessLimit> limits{};  ///< besides those of SpawnDefaults, or instead
  const cpu_set_t* cpus = nullptr;         ///< that it may run on; null: all that the caller may use
  std::size_t cpus_bytes = 0;
  int cgroup = -1;  ///< directory of the cgroup (version 2) that it is to be in; -1, or not allowed: the caller's
  std::span<const int> extras{};  ///< further descriptors, which the program gets from kExtraDescriptor on
};

/// Where a program finds the first of SpawnRequest::extras.
inline constexpr int kExtraDescriptor = 3;
inline constexpr std::size_t kMostExtras = 2;

/// Words as exec wants them, for SpawnRequest::argv and envp. The words must outlive the result.
std::vector<char*> argument_pointers(const std::vector<std::string>& words);

struct SpawnResult {
  std::optional<PidFd> child;  ///< empty on failure
  int error_number = 0;        ///< of clone or exec
  bool exec_failed =
      false;  ///< true: the program could not be executed; false: no process could be made, or not bound to its CPUs

  [[nodiscard]] bool ok() const { return child.has_value(); }
};

/// Starts a program as the leader of a session (and process group) of its own, with only descriptors 0, 1, 2 and the
/// extra ones, and with SIGKILL as its parent-death signal. The caller and its descendants may trace it also where Yama
/// (kernel.yama.ptrace_scope 1) keeps others from that.
///
/// clone(CLONE_VM | CLONE_VFORK | CLONE_PIDFD): no page table is copied however large the caller is, the pidfd comes
/// with the child, and exec's errno comes back through the shared memory while the caller waits for the exec.
/// Without pidfds (SpawnDefaults::use_pidfds, an old kernel) the errno comes back through a pipe, which also works
/// where the memory is not shared after all (valgrind). Call from a thread that lives longer than the children: the
/// parent-death signal is tied to it.
SpawnResult spawn(const SpawnRequest& request, const SpawnDefaults& defaults);

}  // namespace lrun::inline core
