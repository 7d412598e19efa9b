#pragma once

#include "base/environment.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"
#include "report/head_channel.h"

namespace lrun::launcher {

/// Runs a plan on this node, guarded, and ends the process with the exit code of lrun, or by the signal when lrun was
/// interrupted; returns the code when nothing was started. Every failure has been printed before.
/// \throws UserError          the plan cannot be run here.
/// \throws std::system_error  the machine refused before anything was started.
int launch(const LaunchPlan& plan, const LaunchRequest& request, const Environment& environment,
           const LauncherOutput& output);

}  // namespace lrun::launcher
