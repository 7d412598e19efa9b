#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lrun::launcher {

/// CPUs' worth of time that the cgroups of this process allow, the tightest of all levels; empty without a limit.
/// Understands cgroup v2 (cpu.max), v1 (cpu.cfs_quota_us) and both side by side.
///
/// `root` is put before every path that is read, for tests: '/tmp/x' reads '/tmp/x/proc/self/cgroup'.
std::optional<double> cgroup_cpu_limit(const std::string& root = {});

/// CPUs that this process may run on by its affinity mask.
/// \throws std::system_error  the kernel refused to say.
int cpus_by_affinity();
/// The same as the kernel numbers them, ascending.
/// \throws std::system_error  the kernel refused to say.
std::vector<int> allowed_cpus();

/// How many threads can run at once here: the affinity mask and the cgroup limit together, at least 1.
/// A fraction of a CPU counts as one, as in Java and Go: 1.5 gives 2.
/// \throws std::system_error  the kernel refused to say.
int usable_cpus();

}  // namespace lrun::launcher
