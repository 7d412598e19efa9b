#pragma once

#include <sys/types.h>

#include <span>

namespace lrun::inline core {

/// As clone(2): runs `main` in a child that uses `stack` (its size a multiple of 16); and the child is born in the
/// cgroup whose directory `cgroup` is (clone3() with CLONE_INTO_CGROUP), where moving it later would stop all forks of
/// the machine for a moment. The C library has no such call. `main` must not return. Signals must be blocked.
/// \param flags   with CLONE_VM and CLONE_VFORK; CLONE_PIDFD is added.
/// \param pidfd   gets the child's.
/// \return the pid, or -1 and errno: ENOSYS on a processor that this is not written for.
pid_t clone_into_cgroup(int (*main)(void*), std::span<char> stack, int flags, void* argument, int& pidfd, int cgroup);

}  // namespace lrun::inline core
