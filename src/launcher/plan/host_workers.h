#pragma once

#include <vector>

#include "cluster/user_hosts.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// True when all hosts have a number of workers, false when none has.
/// \throws UserError  only some have one.
bool have_slots(const LaunchRequest& request, const std::vector<Host>& hosts);

/// What options say of the workers beside `hosts` agrees with the list: --devices and --nproc-per-node count those of
/// each host, mpirun's -n and -np those of all together.
/// \throws UserError  it contradicts the list, or an -np may mean each host as well as all of them.
void check_worker_counts(const LaunchRequest& request, const std::vector<Host>& hosts);

/// The part of `hosts` that the command line uses where its grammar may count fewer workers than the list has:
/// - under the strategy 'deepspeed' the first N hosts of --num_nodes, and the first N devices of each of --num_gpus;
/// - with -np of horovodrun the first hosts that have N workers together; a host without a number has one.
/// \throws UserError  horovodrun's N is more than all hosts have.
std::vector<Host> used_hosts(std::vector<Host> hosts, const LaunchRequest& request);

/// Nothing where each node counts its own workers.
/// \throws UserError  horovodrun's -np, of all nodes together, in a run whose other nodes are not named.
void refuse_total_of_unnamed_nodes(const LaunchRequest& request);

}  // namespace lrun::launcher
