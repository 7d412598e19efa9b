#pragma once

#include <sys/types.h>

namespace lrun::inline core {

/// Prepares the launcher for the death of its guard. Then the loop gets a signal, and ends the workers. Where the loop
/// is busy for a second, or held by a call that does not return, a signal handler kills the workers' groups and their
/// cgroup, and ends a launcher that still lives 20 seconds later. A launcher that the kernel holds can do nothing of
/// this: when it dies, the workers' own death signal ends them.
///
/// Asks for the death signal and installs its handler. The loop reads forwarded_signal(), which must be blocked, from
/// the process itself, with guard_died_signal() as its value. In the launcher process, once, while it has one thread.
void watch_for_death_of(pid_t guard);

/// A worker's group that the handler kills, from the start of its leader until just before that is reaped: for so long
/// its number cannot be another's. The first 4096 are noted.
void note_group(pid_t group);
void forget_group(pid_t group);

/// The directory of the cgroup that the handler kills, too; it stays open. -1: there is none.
void note_cgroup(int folder);

}  // namespace lrun::inline core
