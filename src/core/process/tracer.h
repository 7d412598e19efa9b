#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "process/exit_status.h"

namespace lrun::inline core {

// A process that is traced (by a debugger, say) and has ended is a zombie which its parent can neither wait for nor
// reap, until the tracer has waited for it, lets go of it or ends.

/// A process that traces another one.
struct Tracer {
  pid_t pid = 0;
  std::string name;  ///< of its program; empty: not known

  /// 'tracer 4711 (gdb)'.
  [[nodiscard]] std::string text() const;
};

/// Empty for a process that is not traced, or is traced by one that /proc does not show.
std::optional<Tracer> tracer_of(pid_t pid);

/// Whether a process has ended with all its threads, reaped or not. Without /proc: no.
bool is_dead(pid_t pid);

/// Whether all user and group ids of a process are our own: the kernel tells more of such a process than of others.
bool has_own_ids(pid_t pid);

/// How a dead process ended; kUnknown where /proc does not show it to us.
ExitStatus status_of_dead(pid_t pid);

}  // namespace lrun::inline core
