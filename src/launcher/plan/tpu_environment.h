#pragma once

#include "plan/launch_plan.h"
#include "plan/worker_environment.h"

namespace lrun::launcher {

/// Adds the variables that are equal for the workers of a node under strategy 'tpu', in the contract's order. On
/// several nodes, which are a pod, torch_xla asks the TPU for the mesh and the addresses of its processes; variables of
/// `base` for them are passed on.
void add_shared_tpu_variables(WorkerEnvironment::Variables& variables, const LaunchPlan& plan, const NodePlan& node,
                              const Environment& base);

/// Adds the variables of one worker. \param alone  the run is on one node
void add_tpu_variables_of(const WorkerPlan& worker, bool alone, WorkerEnvironment::Variables& variables);

}  // namespace lrun::launcher
