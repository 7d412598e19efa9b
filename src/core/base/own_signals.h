#pragma once

#include <csignal>

namespace lrun::inline core {

/// The signal by which the launcher learns that its guard died (also by SIGKILL).
inline int guard_died_signal() { return SIGRTMIN; }

/// The signal that carries another one's number from the guard to the launcher. Real-time signals are queued, each with
/// its sender; of two SIGUSR1, one from another process, the second would be lost.
inline int forwarded_signal() { return SIGRTMIN + 1; }

/// The signal by which the kernel tells the launcher that workers have changed a folder (dnotify).
inline int folder_changed_signal() { return SIGIO; }

/// True of signals that lrun and the C library need for themselves, so that no option may use them. The kernel's
/// real-time signals begin below SIGRTMIN, with those of the C library.
inline bool is_private_signal(int signal_number) {
  constexpr int kLastOfKernelsOwn = 31;
  return signal_number == folder_changed_signal() ||
         (signal_number > kLastOfKernelsOwn && signal_number <= forwarded_signal());
}

}  // namespace lrun::inline core
