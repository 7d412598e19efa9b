#pragma once

#include <map>
#include <string>

#include "plan/worker_environment.h"

namespace lrun::launcher {

/// What a worker gets besides kContract where the strategy is horovod, in the order of the manual: where it is, in the
/// names that Horovod reads, and where it meets the others.
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
     "the network interface by which others reach this node; a value of the user's is kept"},
    {"PYTHONUNBUFFERED", ContractVariable::Scope::kRun, "1; a value of the user's is kept"},
};

[[nodiscard]] bool is_horovod(const LaunchPlan& plan);

/// What is equal for the workers of `node`, in the order of the contract.
WorkerEnvironment::Variables horovod_variables(const LaunchPlan& plan, const NodePlan& node, const Environment& base,
                                               const RunFacts& facts);

/// What is each worker's own.
/// \param earlier  how many of the nodes before the worker's have so many workers
/// \param all      the same of all nodes
WorkerEnvironment::Variables horovod_variables_of(const WorkerPlan& worker, const std::map<int, int>& earlier,
                                                  const std::map<int, int>& all);

/// What the number of workers means for the learning rate; empty: nothing.
std::string horovod_note(int world_size);

/// What of a plan cannot be together with Horovod. Adds warnings, and horovod_note() where the plan is only `shown` or
/// its launcher meets no other: how many workers a job has is known when its nodes have met. \throws UserError  it
/// cannot.
void check_horovod(const Environment& environment, bool shown, LaunchPlan& plan);

}  // namespace lrun::launcher
