// The variables of workers under strategy 'horovod', and the checks of a plan for them. WorkerEnvironment adds the
// variables, and make_plan() calls check_horovod().
#include "plan/horovod_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/split.h"
#include "base/user_error.h"

namespace lrun::launcher {
namespace {

/// lrun keeps the user's value. refuse_other_controllers() has refused any other controller than Gloo.
bool is_users(std::string_view name) {
  return name == "HOROVOD_GLOO_IFACE" || name == "PYTHONUNBUFFERED" || name == "HOROVOD_CONTROLLER" ||
         name == "HOROVOD_CPU_OPERATIONS";
}

/// With another controller Horovod would wait for an MPI that no one has started.
void refuse_other_controllers(const Environment& environment) {
  for (const char* const name : {"HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS"}) {
    const auto value = environment.get(name);
    if (!value || value->empty()) continue;
    if (lower_case(*value) == "gloo") continue;
    throw UserError(fmt::format("'{}={}': lrun connects Horovod's ranks over Gloo", name, *value),
                    fmt::format("unset {}; with MPI, 'mpirun -np N PROGRAM' starts a program of Horovod", name));
  }
}

void refuse_store_of_rank_0(const LaunchPlan& plan) {
  if (!plan.rank_0_hosts_store) return;
  throw UserError(
      "'TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1' and strategy 'horovod' cannot be combined: lrun serves "
      "Horovod's rendezvous at the port that rank 0 would take",
      "unset TORCH_DISABLE_SHARE_RDZV_TCP_STORE");
}

/// Horovod's client of the rendezvous knows IPv4 alone.
void refuse_ipv6(const LaunchPlan& plan) {
  const std::string rendezvous =
      plan.rendezvous && plan.rendezvous->etcd.empty() ? plan.rendezvous->host : std::string();
  const std::string own = plan.rendezvous ? plan.rendezvous->local_addr : std::string();
  for (const std::string& address : {plan.master_addr, rendezvous, own}) {
    if (address.find(':') == std::string::npos) continue;
    throw UserError(fmt::format("'{}': Horovod reaches its rendezvous over IPv4 only", address),
                    "use an IPv4 address, or a name that has one");
  }
}

int nodes_with(int local_rank, const std::map<int, int>& nodes_by_workers) {
  int nodes = 0;
  for (auto entry = nodes_by_workers.upper_bound(local_rank); entry != nodes_by_workers.end(); ++entry) {
    nodes += entry->second;
  }
  return nodes;
}

void refuse_own_variables(const LaunchPlan& plan) {
  for (const EnvironmentChange& change : plan.setup.environment) {
    if (change.kind == EnvironmentChange::Kind::kUnset || is_users(change.name)) continue;
    const bool is_ours = std::any_of(std::begin(kHorovodContract), std::end(kHorovodContract),
                                     [&](const ContractVariable& variable) { return variable.name == change.name; });
    if (is_ours) refuse_own_variable(change);
  }
}

}  // namespace

bool is_horovod(const LaunchPlan& plan) { return plan.strategy.value == Strategy::kHorovod; }

WorkerEnvironment::Variables horovod_variables(const LaunchPlan& plan, const NodePlan& node, const Environment& base,
                                               const RunFacts& facts) {
  WorkerEnvironment::Variables variables = {
      {"HOROVOD_SIZE", std::to_string(plan.world_size)},
      {"HOROVOD_LOCAL_SIZE", std::to_string(node.local_world_size())},
      {"HOROVOD_HOSTNAME", facts.node_name.empty() ? node.name : facts.node_name},
      {"HOROVOD_CONTROLLER", "gloo"},
      {"HOROVOD_CPU_OPERATIONS", "gloo"},
      {"HOROVOD_GLOO_RENDEZVOUS_ADDR", facts.master_addr.empty() ? plan.master_addr : facts.master_addr},
      {"HOROVOD_GLOO_RENDEZVOUS_PORT", std::to_string(facts.master_port)},
  };
  const std::string interface = base.get("HOROVOD_GLOO_IFACE").value_or(facts.network_interface);
  if (!interface.empty()) variables.emplace_back("HOROVOD_GLOO_IFACE", interface);
  variables.emplace_back("PYTHONUNBUFFERED", base.get("PYTHONUNBUFFERED").value_or("1"));
  return variables;
}

WorkerEnvironment::Variables horovod_variables_of(const WorkerPlan& worker, const std::map<int, int>& earlier,
                                                  const std::map<int, int>& all) {
  return {{"HOROVOD_RANK", std::to_string(worker.rank)},
          {"HOROVOD_LOCAL_RANK", std::to_string(worker.local_rank)},
          {"HOROVOD_CROSS_RANK", std::to_string(nodes_with(worker.local_rank, earlier))},
          {"HOROVOD_CROSS_SIZE", std::to_string(nodes_with(worker.local_rank, all))}};
}

std::string horovod_note(int world_size) {
  if (world_size == 1) return {};
  return fmt::format(
      "Horovod averages gradients over {0} workers: a program of Horovod should scale a learning rate tuned for one "
      "worker by {0} (linear rule, with warm-up); session.optimizer() of liblrun does so itself",
      world_size);
}

void check_horovod(const Environment& environment, bool shown, LaunchPlan& plan) {
  if (!is_horovod(plan)) return;
  refuse_own_variables(plan);
  refuse_other_controllers(environment);
  refuse_store_of_rank_0(plan);
  refuse_ipv6(plan);
  if (plan.isolate_gpus) {
    plan.warnings.emplace_back(
        "each worker sees only its own GPU, as number 0: a program that chooses one by hvd.local_rank() does not find "
        "it");
  }
  const std::string note = horovod_note(plan.world_size);
  if (!note.empty() && (shown || !plan.rendezvous)) plan.notes.push_back(note);
}

}  // namespace lrun::launcher
