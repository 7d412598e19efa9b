#pragma once

#include "base/environment.h"
#include "cluster/allocation.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"
#include "run/launch.h"

namespace lrun::launcher {

/// Refuses what every node of a run would refuse, before any other one is reached.
/// \throws UserError  as make_plan() on each of them.
void check_for_all_nodes(const LaunchRequest& request, const Environment& of_workers);

/// Shows the plan of a request, or runs it on this node. `request` has its place in `allocation`, which was detected
/// with `environment`: that of the workers.
/// \return the exit code of lrun. \throws as launch().
int run_request(const LaunchRequest& request, const Allocation& allocation, const Environment& own,
                const Environment& of_workers, const LauncherOutput& output);

}  // namespace lrun::launcher
