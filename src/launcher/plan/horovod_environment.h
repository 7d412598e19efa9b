#pragma once

#include <map>
#include <string>

#include "plan/worker_environment.h"

namespace lrun::launcher {

/// The variables of a worker under strategy 'horovod' besides kContract, in the order of the manual: its place, under
/// the names that Horovod reads, and the address of the rendezvous.
inline constexpr ContractVariable kHorovodContract[] = {
    {"HOROVOD_RANK", ContractVariable::Scope::kRank, "as RANK"},
    {"HOROVOD_SIZE", ContractVariable::Scope::kRun, "as WORLD_SIZE"},
    {"HOROVOD_LOCAL_RANK", ContractVariable::Scope::kRank, "this worker on its node"},
    {"HOROVOD_LOCAL_SIZE", ContractVariable::Scope::kNode, "as LOCAL_WORLD_SIZE"},
    {"HOROVOD_CROSS_RANK", ContractVariable::Scope::kRank, "this worker's node among those that have its local rank"},
    {"HOROVOD_CROSS_SIZE", ContractVariable::Scope::kRank, "how many these are"},
    {"HOROVOD_HOSTNAME", ContractVariable::Scope::kNode, "a name of this node that no other has"},
    {"HOROVOD_CONTROLLER", ContractVariable::Scope::kRun, "'gloo'"},
    {"HOROVOD_CPU_OPERATIONS", ContractVariable::Scope::kRun, "'gloo'"},
    {"HOROVOD_GLOO_RENDEZVOUS_ADDR", ContractVariable::Scope::kRun, "as MASTER_ADDR"},
    {"HOROVOD_GLOO_RENDEZVOUS_PORT", ContractVariable::Scope::kRun, "as MASTER_PORT"},
    {"HOROVOD_GLOO_IFACE", ContractVariable::Scope::kNode,
     "the network interface by which others reach this node; a value set by the user is kept"},
    {"PYTHONUNBUFFERED", ContractVariable::Scope::kRun, "1; a value set by the user is kept"},
};

[[nodiscard]] bool is_horovod(const LaunchPlan& plan);

/// The variables that are equal for the workers of `node`, in the order of the contract.
WorkerEnvironment::Variables horovod_variables(const LaunchPlan& plan, const NodePlan& node, const Environment& base,
                                               const RunFacts& facts);

/// The variables that each worker has for itself.
/// \param earlier  the number of nodes before the worker's, by their number of workers
/// \param all      the number of all nodes, by their number of workers
WorkerEnvironment::Variables horovod_variables_of(const WorkerPlan& worker, const std::map<int, int>& earlier,
                                                  const std::map<int, int>& all);

/// The note about the learning rate for so many workers. Empty for one.
std::string horovod_note(int world_size);

/// Checks a plan of strategy 'horovod' and adds warnings to it. Adds horovod_note() where the plan is only `shown` or
/// has one node; otherwise the number of workers is only known after the rendezvous. \throws UserError  the plan has
/// something that Horovod cannot work with
void check_horovod(const Environment& environment, bool shown, LaunchPlan& plan);

}  // namespace lrun::launcher
