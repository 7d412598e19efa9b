#pragma once

#include "cluster/allocation.h"
#include "plan/launch_request.h"

namespace lrun {

/// `request` leaves it to a cluster's manager which launchers are one run. torchrun never does: its users name nodes
/// and endpoint themselves, also inside of an allocation.
bool leaves_nodes_to_manager(const LaunchRequest& request);

/// On how many nodes a launcher has to be started, each as a part of this run, before anything else; 0: this launcher
/// is all, or one of them. \param request  as placed() gave it
int nodes_to_start(const LaunchRequest& request, const Allocation& allocation);

/// The request as somebody would have written it who knows the allocation: number of nodes, node rank, where to meet,
/// name of the run. What he did say of these stays. Without a job in it, as it is.
/// \throws UserError  another number of nodes was asked for.
LaunchRequest placed(LaunchRequest request, const Allocation& allocation);

}  // namespace lrun
