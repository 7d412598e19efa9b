#pragma once

namespace lrun::inline core {

/// lrun's own exit codes, after timeout(1). Any other code is that of a worker.
inline constexpr int kExitTimedOut = 124;  ///< a limit of the user's ended the run
inline constexpr int kExitRefused = 125;   ///< lrun itself failed, or refused: usage, plan, rendezvous, resources
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

/// A shell shows the end by a signal as this code plus the signal's number, and so does lrun.
inline constexpr int kExitSignalBase = 128;

/// 128 + `signal_number`.
constexpr int exit_code_of_signal(int signal_number) { return kExitSignalBase + signal_number; }

}  // namespace lrun::inline core
