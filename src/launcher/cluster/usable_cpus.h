#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lrun::launcher {

/// The CPU time that the cgroups of this process allow, in CPUs: the tightest limit of all levels; empty without a
/// limit. Reads cgroup v2 (cpu.max), v1 (cpu.cfs_quota_us), and both side by side.
///
/// `root` is put before every path that is read, for tests: '/tmp/x' reads '/tmp/x/proc/self/cgroup'.
std::optional<double> cgroup_cpu_limit(const std::string& root = {});

/// The number of CPUs in this process's affinity mask.
/// \throws std::system_error  the kernel did not give the mask.
int cpus_by_affinity();
/// The numbers of these CPUs, ascending.
/// \throws std::system_error  the kernel did not give the mask.
std::vector<int> allowed_cpus();

/// The number of threads that can run at once, by affinity mask and cgroup limit; at least 1. A fraction of a CPU
/// counts as one, as in Java and Go: 1.5 gives 2. \throws std::system_error  the kernel did not give the mask.
int usable_cpus();

}  // namespace lrun::launcher
