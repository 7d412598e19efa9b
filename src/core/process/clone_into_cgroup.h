#pragma once

#include <sys/types.h>

#include <span>

namespace lrun::inline core {

/// clone(2) into a cgroup: runs `main` in a child that uses `stack` (its size a multiple of 16) and is born in the
/// cgroup with the directory `cgroup` (clone3() with CLONE_INTO_CGROUP). Moving it later would stop all forks of the
/// machine for a moment. The C library has no such call. `main` must not return. Signals must be blocked. \param flags
/// with CLONE_VM and CLONE_VFORK; CLONE_PIDFD is added. \param pidfd   gets the child's. \return the pid, or -1 and
/// errno: ENOSYS on processors other than x86-64 and ARM64.
pid_t clone_into_cgroup(int (*main)(void*), std::span<char> stack, int flags, void* argument, int& pidfd, int cgroup);

}  // namespace lrun::inline core
