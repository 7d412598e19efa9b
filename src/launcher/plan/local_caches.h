#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "cluster/allocation.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// The folders in which triton, torch's inductor, CUDA and numba keep what they compile, as far as the user has not
/// named them: for Questions::folders.
std::vector<std::string> cache_folders(const LaunchRequest& request, const Environment& environment);

/// Workers whose caches lie on a network file system get them in LaunchPlan::cache_folder instead, by variables. Ranks
/// of several nodes that compile the same there at once disturb each other (triton issue 11512), and wait for it. The
/// user's variables, --env and --unset stand. Where the folder cannot be used, a warning says why. Two variables are
/// left alone: MPLCONFIGDIR would hide the user's matplotlibrc, too, and TORCH_EXTENSIONS_DIR extensions that were
/// built where a compiler is; torch locks those itself.
void keep_caches_on_node(const Environment& environment, const AllocatedNode& here, LaunchPlan& plan);

}  // namespace lrun::launcher
