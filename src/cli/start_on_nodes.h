#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "cluster/allocation.h"
#include "plan/launch_request.h"

namespace lrun {

/// Becomes what starts one launcher on each of `nodes` nodes of the cluster's job, with the arguments of this one; they
/// then parse, detect and plan, each on its node. Returns only by an exception.
/// \throws UserError  there is no such starter on PATH.
/// \throws std::system_error  it cannot be executed.
[[noreturn]] void start_on_nodes(int nodes, const std::vector<std::string>& argv, const LaunchRequest& request,
                                 const Allocation& allocation, const Environment& environment);

}  // namespace lrun
