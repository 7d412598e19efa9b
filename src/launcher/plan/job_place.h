#pragma once

#include <string>

#include "cluster/allocation.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// `request` leaves it to Slurm which launchers are one run. torchrun never does: its users name nodes and endpoint
/// themselves, also inside of an allocation.
bool leaves_nodes_to_manager(const LaunchRequest& request);

/// `request` leaves anything of number of nodes, node rank and where to meet to what other managers tell. As with
/// leaves_nodes_to_manager(), torchrun's never does.
bool leaves_anything_to_manager(const LaunchRequest& request);

/// The request with as many workers a node as the job asked for tasks there, where it says nothing of devices and this
/// node has no GPU that would tell how many. \param tasks  tasks_asked_per_node()
LaunchRequest with_tasks_asked(LaunchRequest request, const Allocation& allocation, int tasks);

/// On how many nodes a launcher has to be started, each as a part of this run, before anything else; 0: this launcher
/// is all, or one of them. \param request  as placed() gave it
int nodes_to_start(const LaunchRequest& request, const Allocation& allocation);

/// The request as somebody would have written it who knows the allocation: number of nodes, node rank, where to meet,
/// name of the run. What he did say of these stays. Without a job in it, as it is.
/// \throws UserError  another number of nodes was asked for; a variable of his contradicts the manager's; the manager
/// starts several launchers on a host, or none on the job's other hosts; nobody says where to meet, and this is no dry
/// run.
LaunchRequest placed(LaunchRequest request, const Allocation& allocation);

/// What was found of the job and which variables told it, for -v: one line; empty: no manager's job.
std::string describe_place(const LaunchRequest& request, const Allocation& allocation);

}  // namespace lrun::launcher
