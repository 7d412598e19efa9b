#pragma once

#include "base/environment.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"

namespace lrun {

/// Runs a plan on this node, guarded, and gives the exit code of lrun. Dies by the signal instead when lrun was
/// interrupted. Every failure has been told on stderr when this returns.
/// \throws UserError          the plan cannot be run here.
/// \throws std::system_error  the machine refused before anything was started.
int launch(const LaunchPlan& plan, const LaunchRequest& request, const Environment& environment);

}  // namespace lrun
