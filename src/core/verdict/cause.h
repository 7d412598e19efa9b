#pragma once

#include <optional>
#include <string_view>

namespace lrun::inline core {

/// The class of a worker's end, on which a scheduler or a script may act.
enum class Cause {
  kSucceeded,            ///< exit code 0
  kEndedEarly,           ///< exit code 0 while other ranks waited for it; they failed or were stopped
  kOwnError,             ///< an exit code other than 0
  kFatalSignal,          ///< a signal that lrun did not send
  kOutOfMemory,          ///< the kernel's out-of-memory killer, seen in the cgroup of the run
  kProbablyOutOfMemory,  ///< SIGKILL of unknown origin while the kernel killed some process for memory
  kSharedMemoryFull,     ///< SIGBUS while /dev/shm was full
  kCpuTimeLimit,         ///< SIGXCPU or SIGKILL after the process used up its RLIMIT_CPU
  kWatchdogAbort,        ///< it, or its watchdog, gave up waiting for a collective operation: a victim
  kPeerLost,             ///< it lost the connection to a worker that had ended: a victim
  kStoppedByLrun,        ///< lrun sent it a signal to end
  kExecFailed,           ///< it could not be executed
  kLost,                 ///< how it ended is not known
};

/// 'own_error', 'out_of_memory', ...: the name of the class in JSON.
std::string_view name_of(Cause cause);
std::optional<Cause> cause_named(std::string_view name);

/// True where a worker failed because another one did: a worker with an error of its own is to blame instead.
constexpr bool is_victim(Cause cause) { return cause == Cause::kWatchdogAbort || cause == Cause::kPeerLost; }

}  // namespace lrun::inline core
