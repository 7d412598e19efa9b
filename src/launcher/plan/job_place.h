#pragma once

#include <string>

#include "cluster/allocation.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// `request` leaves it to Slurm which launchers form one run. Under torchrun's name it never does: users of torchrun
/// name nodes and endpoint themselves, also inside of an allocation.
bool leaves_nodes_to_manager(const LaunchRequest& request);

/// `request` leaves the number of nodes, the node rank or the endpoint to another manager. Under torchrun's name it
/// never does, as above.
bool leaves_anything_to_manager(const LaunchRequest& request);

/// The request with as many workers per node as the job asked for tasks, where the request has no devices and this node
/// has no GPUs to count.
/// \param tasks  tasks_asked_per_node()
/// \throws UserError  more tasks than one node can have
LaunchRequest with_tasks_asked(LaunchRequest request, const Allocation& allocation, int tasks);

/// Tells that a job with so many tasks, but none asked for per node, gets one worker a node. Empty: it has no more
/// tasks than nodes, or the user says the number of workers.
std::string note_of_unused_tasks(const LaunchRequest& request, const Allocation& allocation, int tasks);

/// The number of nodes on which lrun has to start a launcher for this run. 0: this launcher is all of the run, or one
/// of its launchers. \param request  from placed()
int nodes_to_start(const LaunchRequest& request, const Allocation& allocation);

/// The request with number of nodes, node rank, endpoint and name of the run from the allocation. Values that the user
/// gave stay. Without a job in the allocation it stays as it is.
/// \throws UserError  the user asked for another number of nodes; a variable contradicts the manager's; the manager
///                    starts several launchers on a host, or none on the job's other hosts; there is no endpoint, and
///                    this is no dry run
LaunchRequest placed(LaunchRequest request, const Allocation& allocation);

/// The manager's job and the variables that tell it, for -v: one line. Empty: there is no such job.
std::string describe_place(const LaunchRequest& request, const Allocation& allocation);

}  // namespace lrun::launcher
