#pragma once

#include <vector>

#include "base/environment.h"
#include "plan/device_choice.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// Decides which GPUs every worker of `plan` sees, and whether each sees only its own. Sets isolate_gpus, and the
/// fields of nodes and workers for the vendor's variable. \param choices  for the plan's nodes, in their order \throws
/// UserError  a worker would see no GPU, or one process several MIG instances
void choose_visibility(LaunchPlan& plan, const std::vector<DeviceChoice>& choices, const LaunchRequest& request,
                       const Environment& environment);

}  // namespace lrun::launcher
