#pragma once

#include <string>

#include "base/environment.h"
#include "cluster/allocation.h"
#include "cluster/program_facts.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// Decides everything about a run before anything is started. Pure: equal input gives an equal plan, without a system
/// call.
///
/// Nodes that were asked for and are not in `allocation` are planned like the first and named 'node1', …
/// \throws UserError  the request contradicts itself, or asks for something that is not here
LaunchPlan make_plan(const LaunchRequest& request, const Environment& environment, const Allocation& allocation,
                     const ProgramFacts& program, std::string run_id);

}  // namespace lrun::launcher
