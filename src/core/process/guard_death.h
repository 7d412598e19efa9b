#pragma once

#include <sys/types.h>

namespace lrun::inline core {

/// What the launcher does about the death of its guard: its loop is told, and does the rest. Should the loop not come
/// to it within a second (it is busy, or held by a call that does not return), a signal handler kills the workers'
/// groups and their cgroup, and a launcher that still lives 20 seconds later is ended. A launcher that the kernel holds
/// does nothing of this: the death signal of the workers themselves ends them with it.
///
/// Asks for the death signal and installs its handler. The loop reads forwarded_signal(), which must be blocked, from
/// the process itself, with guard_died_signal() as its value. In the launcher process, once, while it has one thread.
void watch_for_death_of(pid_t guard);

/// A worker's group that the handler kills, from the start of its leader until just before that is reaped: so long its
/// number is ours. The first 4096 are noted.
void note_group(pid_t group);
void forget_group(pid_t group);

/// The directory of the cgroup that the handler ends, besides; it stays open. -1: there is none.
void note_cgroup(int folder);

}  // namespace lrun::inline core
