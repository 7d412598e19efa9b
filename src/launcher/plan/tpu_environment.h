#pragma once

#include "plan/launch_plan.h"
#include "plan/worker_environment.h"

namespace lrun::launcher {

/// Adds what all workers of a node get under strategy 'tpu', in the contract's order. On several nodes, which are a
/// pod, the mesh and the addresses of its processes are the TPU's to tell: torch_xla asks it for what is not set, and
/// what `base` has of these is passed on.
void add_shared_tpu_variables(WorkerEnvironment::Variables& variables, const LaunchPlan& plan, const NodePlan& node,
                              const Environment& base);

/// The same of one worker. `alone`: the run is on one node.
void add_tpu_variables_of(const WorkerPlan& worker, bool alone, WorkerEnvironment::Variables& variables);

}  // namespace lrun::launcher
