#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "cluster/allocation.h"
#include "plan/launch_request.h"
#include "report/message_sink.h"

namespace lrun::launcher {

/// Runs srun, which starts one launcher on each of `nodes` nodes of the cluster's job, with the arguments of this one.
/// Each launcher parses, detects and plans on its node. \return the run's code. \throws UserError  there is no srun on
/// PATH. \throws std::system_error  it cannot be executed.
int start_through_srun(int nodes, const std::vector<std::string>& argv, const LaunchRequest& request,
                       const Allocation& allocation, const Environment& environment, MessageSink& sink);

}  // namespace lrun::launcher
