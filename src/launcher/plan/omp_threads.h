#pragma once

#include <string>

#include "base/environment.h"
#include "cluster/allocation.h"
#include "plan/launch_plan.h"

namespace lrun::launcher {

/// OMP_NUM_THREADS of a worker; 0: it stays unset. Each replica of strategy dp is a thread with a team of its own, so
/// devices are counted, not processes.
/// \param cpus  that lrun may use on this node
int threads_per_worker(const LaunchPlan& plan, int cpus, const Environment& environment);

/// The warning about an OMP_NUM_THREADS that is no number of threads, nor a list such as '8,2' of them for nested
/// regions; empty: it is, or there is none.
std::string warn_about_threads(const Environment& environment);

/// True where lrun sets OMP_NUM_THREADS of a bound worker to the number of its own cores.
bool threads_follow_binding(const LaunchPlan& plan);

/// The most threads of a bound worker of `node`: its share of the CPU quota of `host`. Very many where there is none.
int most_threads(const NodePlan& node, const AllocatedNode& host);

}  // namespace lrun::launcher
