#pragma once

#include <vector>

#include "cluster/user_hosts.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// \return true when all hosts have a number of workers, false when none has
/// \throws UserError  only some have one
bool have_slots(const LaunchRequest& request, const std::vector<Host>& hosts);

/// Options that count workers agree with the list: --devices and --nproc-per-node count the workers of each host, and
/// -n and -np those of all hosts.
/// \throws UserError  an option contradicts the list, or an -np could mean each host as well as all of them
void check_worker_counts(const LaunchRequest& request, const std::vector<Host>& hosts);

/// The part of `hosts` that is used where a launcher's grammar may count fewer workers than the list has:
/// - under strategy 'deepspeed' the first N hosts of --num-nodes, and the first N devices of each host of --num-gpus;
/// - with -np of horovodrun the first hosts that have N workers in total. A host without a number has one.
/// \throws UserError  horovodrun's N is more than all hosts have
std::vector<Host> used_hosts(std::vector<Host> hosts, const LaunchRequest& request);

/// \throws UserError  horovodrun's -np, a total over all nodes, in a run whose other nodes are not named
void refuse_total_of_unnamed_nodes(const LaunchRequest& request);

}  // namespace lrun::launcher
