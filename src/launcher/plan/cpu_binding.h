#pragma once

#include <string>
#include <vector>

#include "cluster/cpu_topology.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// Gives every worker of `node` the CPUs that are close to its devices, and sets its threads:
///
/// kCore    cores of its own: those of the device's NUMA node, divided among that node's devices in their order
/// kCache   the cores that share one cache; a NUMA node's groups, largest first, go round its devices
/// kNuma    all cores of the NUMA node
/// kSocket  all cores of the socket
///
/// Devices whose NUMA node is unknown, CPU ranks among them, are spread over all cores in blocks. A process with
/// several devices gets the CPUs of all. Only CPUs are bound. Memory follows, as it comes from the node whose CPU first
/// touches it.
///
/// A worker gets one thread for each core of its share, divided by the number of devices that have the same cores, as
/// the threads of dp's replicas each open a team of their own. It gets at most `most_threads`, the CPU quota's share.
/// \return warnings
/// \throws UserError  more devices than cores for kCore
std::vector<std::string> bind_workers(const Setting<Binding>& binding, const CpuTopology& topology, int most_threads,
                                      NodePlan& node);

/// The CPUs of bound workers for --dry-run, equal neighbours in one line: 'local ranks 0-3: CPUs 0-7,16-23 (NUMA node
/// 0), 2 threads each'. Empty when nothing is bound.
std::vector<std::string> binding_lines(const NodePlan& node);

}  // namespace lrun::launcher
