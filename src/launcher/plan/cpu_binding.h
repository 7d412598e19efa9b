#pragma once

#include <string>
#include <vector>

#include "cluster/cpu_topology.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// Gives every worker of `node` its CPUs and sets its threads, by what is close to its devices:
///
/// kCore    cores of its own: those of the device's NUMA node, divided among that node's devices in their order
/// kCache   the cores that share one cache; a NUMA node's groups, largest first, go round its devices
/// kNuma    all cores of the NUMA node
/// kSocket  all cores of the socket
///
/// Devices whose node is unknown, CPU ranks among them, are spread over all cores in blocks. A process with several
/// devices gets the CPUs of all. Only CPUs are bound: memory comes from the node whose CPU first touches it, so it
/// follows.
///
/// `threads` of a worker is one for each core of its share, divided by those it shares the cores with and by its
/// devices (threads of dp's replicas each open a team of their own), and no more than `most_threads` (the CPU quota's
/// share). \return warnings. \throws UserError  more devices than cores for kCore.
std::vector<std::string> bind_workers(const Setting<Binding>& binding, const CpuTopology& topology, int most_threads,
                                      NodePlan& node);

/// Bound workers for people, equal neighbours in one line: 'local ranks 0-3: CPUs 0-7,16-23 (NUMA node 0), 2 threads
/// each'. Empty when nothing is bound.
std::vector<std::string> binding_lines(const NodePlan& node);

}  // namespace lrun::launcher
