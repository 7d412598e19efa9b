#pragma once

#include "base/environment.h"
#include "base/user_error.h"
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

/// Ends a node of a job that can start nothing, and tells the other nodes why. \param plan  with a rendezvous. \return
/// the exit code of lrun.
int end_unstarted(const UserError& why, const LaunchPlan& plan, const LaunchRequest& request,
                  const Environment& environment, MessageSink& sink);

/// Pauses before a task of a Slurm step ends with a message: srun stops reading the output of a step when its last task
/// has ended and one was killed. A line that is sent soon after another one is delayed until TCP has acknowledged that
/// one (Nagle's algorithm). srun would often miss the verdict of a job that lost a node, and the code that
/// watch_srun_step() waits for.
void let_srun_read(const Environment& environment);

}  // namespace lrun::launcher
