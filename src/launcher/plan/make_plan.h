#pragma once

#include <string>

#include "base/environment.h"
#include "cluster/allocation.h"
#include "cluster/program_facts.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// What the plan of `request` can depend on.
Questions questions_of(const LaunchRequest& request, const Environment& environment);

/// Decides everything about a run before anything is started. Pure: equal input, equal plan; no system call.
///
/// With more nodes asked for than `allocation` has, the missing ones are planned like the first and named 'node1', …
/// \throws UserError  what was asked contradicts itself or is not here.
LaunchPlan make_plan(const LaunchRequest& request, const Environment& environment, const Allocation& allocation,
                     const ProgramFacts& program, std::string run_id);

}  // namespace lrun::launcher
