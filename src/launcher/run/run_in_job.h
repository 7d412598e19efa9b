#pragma once

#include "base/environment.h"
#include "plan/launch_plan.h"
#include "process/guard.h"
#include "report/head_channel.h"
#include "run/run_node.h"

namespace lrun::launcher {

/// Joins the other launchers of the job before any worker starts, runs this node's share, and leaves the job. The
/// leader is the last to leave. \return the exit code of lrun. \throws UserError, std::system_error  as Job and
/// run_node().
int run_in_job(const LaunchPlan& plan, const Environment& environment, NodeRun run, EventLoop& loop, Guard& guard,
               const LauncherOutput& output);

/// The title of this process names the run, which is the job's one once the nodes have met.
void name_launcher(const Guard& guard, const LaunchPlan& plan);

}  // namespace lrun::launcher
