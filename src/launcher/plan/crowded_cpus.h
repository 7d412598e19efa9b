#pragma once

#include <string>

#include "base/environment.h"
#include "plan/launch_plan.h"

namespace lrun::launcher {

/// More workers than this on one CPU, or more threads that OMP_NUM_THREADS asks for, cause a warning. A few workers on
/// a laptop are a trial; 64 on two CPUs are a mistake.
inline constexpr int kMostPerCpu = 4;

/// The warning where the plan's first node has far more workers than CPUs, or else far more threads. Empty: neither.
/// Workers on GPUs and TPUs may be more than CPUs.
/// \param cpus  that lrun may use on this node
std::string warn_about_crowded_cpus(const LaunchPlan& plan, int cpus, const Environment& environment);

}  // namespace lrun::launcher
