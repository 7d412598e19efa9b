#pragma once

#include <csignal>

namespace lrun::inline core {

/// The signal by which the launcher learns that its guard died (also by SIGKILL).
inline int guard_died_signal() { return SIGRTMIN; }

/// The signal that carries another one's number from the guard to the launcher. Real-time signals are queued, each with
/// its sender; a second SIGUSR1 from a stranger would take the place of the guard's.
inline int forwarded_signal() { return SIGRTMIN + 1; }

/// True of what only lrun and the C library send: nobody can be allowed to give it a meaning. The kernel's real-time
/// signals begin below SIGRTMIN, with those of the C library.
inline bool is_private_signal(int signal_number) {
  constexpr int kLastOfKernelsOwn = 31;
  return signal_number > kLastOfKernelsOwn && signal_number <= forwarded_signal();
}

}  // namespace lrun::inline core
