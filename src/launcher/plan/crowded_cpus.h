#pragma once

#include <string>

#include "base/environment.h"
#include "plan/launch_plan.h"

namespace lrun::launcher {

/// So many workers, or threads that OMP_NUM_THREADS asks for, may share a CPU before they are warned of: a few on a
/// laptop are a trial, and 64 on two CPUs a mistake.
inline constexpr int kMostPerCpu = 4;

/// The warning about workers of the plan's first node that are far more than its CPUs, or else about their threads;
/// empty: neither. `cpus` are those that may be used. On GPUs and TPUs workers may be more.
std::string warn_about_crowded_cpus(const LaunchPlan& plan, int cpus, const Environment& environment);

}  // namespace lrun::launcher
