#pragma once

#include <optional>
#include <string_view>

namespace lrun::inline core {

/// Why a worker ended, as a class: what a scheduler or a script may act on.
enum class Cause {
  kSucceeded,            ///< exit code 0
  kEndedEarly,           ///< exit code 0 while others waited for it, which failed or had to be stopped
  kOwnError,             ///< an exit code other than 0, by its own will
  kFatalSignal,          ///< a signal that lrun did not send
  kOutOfMemory,          ///< the kernel's out-of-memory killer, seen in the cgroup of the run
  kProbablyOutOfMemory,  ///< SIGKILL of unknown origin while the kernel killed some process for memory
  kSharedMemoryFull,     ///< SIGBUS while /dev/shm was full
  kCpuTimeLimit,         ///< SIGXCPU or SIGKILL of a process that had used up its RLIMIT_CPU
  kWatchdogAbort,        ///< it, or its watchdog, gave up waiting for a collective operation: a victim
  kPeerLost,             ///< lost its connection to a worker that had ended: a victim
  kStoppedByLrun,        ///< told to end
  kExecFailed,           ///< never ran
  kLost,                 ///< how it ended was never learned
};

/// 'own_error', 'out_of_memory', ...: the class as a word for programs.
std::string_view name_of(Cause cause);
std::optional<Cause> cause_named(std::string_view name);

/// True of one that failed because another had: if anybody else has an error of its own, that one is to blame.
constexpr bool is_victim(Cause cause) { return cause == Cause::kWatchdogAbort || cause == Cause::kPeerLost; }

}  // namespace lrun::inline core
