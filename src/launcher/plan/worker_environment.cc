// The environment of workers: the contract's variables with their values, and the inherited ones without those of other
// launchers. A LaunchPlan comes in; run starts each worker with it, and --dry-run shows it.
#include "plan/worker_environment.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "cluster/visible_gpus.h"
#include "plan/horovod_environment.h"
#include "plan/tpu_environment.h"

namespace lrun::launcher {
namespace {

using Scope = ContractVariable::Scope;

/// Variables of other launchers that say 'I am task 3'. Programs read them before or beside ours, and in a worker they
/// would tell the launcher's own place. Variables that describe the job (SLURM_JOB_ID, SLURM_JOB_NODELIST) stay.
constexpr std::string_view kForeignRanks[] = {
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_GTIDS",
    "SLURM_TASK_PID",  // srun
    "PMIX_RANK",
    "PMI_RANK",
    "PMI_SIZE",
    "PMI_FD",
    "PMI_ID",
    "PMI_SPAWNED",  // PMI, PMIx
    "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS",
    "PALS_RANKID",
    "PALS_LOCAL_RANKID",  // MPICH, Cray
    "HOROVOD_RANK",
    "HOROVOD_SIZE",
    "HOROVOD_LOCAL_RANK",
    "HOROVOD_LOCAL_SIZE",  // horovodrun
    "HOROVOD_CROSS_RANK",
    "HOROVOD_CROSS_SIZE",
    "CROSS_RANK",
    "CROSS_SIZE",
    "LOCAL_SIZE",  // deepspeed
    "FLUX_TASK_RANK",
    "FLUX_TASK_LOCAL_ID",
    "JSM_NAMESPACE_RANK",
    "JSM_NAMESPACE_LOCAL_RANK",  // Flux, LSF
    "JSM_NAMESPACE_SIZE",
};
constexpr std::string_view kForeignPrefixes[] = {"OMPI_COMM_WORLD_", "MV2_COMM_WORLD_"};

/// Variables of the launcher, or of an lrun that this one runs inside.
constexpr std::string_view kPrivate[] = {"LRUN_JOB_SECRET",      "LRUN_ETCD_USER",   "LRUN_SRUN_PORT",
                                         "LRUN_OUTCOME_TOKEN",   "LRUN_PROGRESS_FD", "LRUN_LAUNCH_CALL",
                                         "LRUN_NTASKS_PER_NODE", "LRUN_SRUN_FOLDER", "LRUN_MODULE_PYTHON"};

bool is_in(std::string_view name, const auto& names) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

const ContractVariable* find_in(std::string_view name, const auto& table) {
  const auto found = std::find_if(std::begin(table), std::end(table),
                                  [&](const ContractVariable& variable) { return variable.name == name; });
  return found == std::end(table) ? nullptr : &*found;
}

bool is_contract(std::string_view name, std::optional<Strategy> strategy = {}) {
  const ContractVariable* const row = find_in(name, kContract);
  return row != nullptr && (!row->strategy || row->strategy == strategy);
}

bool is_unwanted(std::string_view name, const Environment& base, Strategy strategy) {
  if (name == "LRUN_RESUME") return base.has("LRUN_RUN_ID");  // it is for the workers of the outer run
  if (is_in(name, kPrivate)) return true;
  if (is_in(name, kForeignRanks)) return !is_contract(name, strategy);
  return std::any_of(std::begin(kForeignPrefixes), std::end(kForeignPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::string entry_of(const std::string& name, const std::string& value) {
  std::string entry;
  entry.reserve(name.size() + 1 + value.size());
  return entry.append(name).append(1, '=').append(value);
}

bool has_threads_of_their_own(const NodePlan& node) {
  return !node.workers.empty() && node.workers.front().omp_num_threads > 0;
}

bool sets_visible_devices(const NodePlan& node) {
  return !node.workers.empty() && node.workers.front().visible_devices.has_value();
}

/// Adds inherited variables of the vendors, without the one that is set for each worker. HIP reads CUDA's variable
/// where its own is missing, so that CUDA's must not contradict it.
void add_visible_devices(WorkerEnvironment::Variables& variables, const NodePlan& node, const Environment& base) {
  const bool sets = sets_visible_devices(node);
  const std::string_view own = visibility_variable(node.gpu_vendor);
  for (const std::string_view name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"}) {
    const bool replaced = name == own || (node.gpu_vendor == GpuVendor::kAmd && name == "CUDA_VISIBLE_DEVICES");
    const auto inherited = base.get(name);
    if (inherited && !(sets && replaced)) variables.emplace_back(name, *inherited);
  }
  // lrun counts as the driver does; without this CUDA puts the fastest GPU first.
  const bool counted = sets && node.gpu_vendor == GpuVendor::kNvidia && !base.has("CUDA_VISIBLE_DEVICES") &&
                       node.devices.front().kind == DeviceKind::kGpu;
  const auto order = base.get("CUDA_DEVICE_ORDER");
  if (order || counted) variables.emplace_back("CUDA_DEVICE_ORDER", order.value_or("PCI_BUS_ID"));
}

/// The user removes this variable from the workers' environment.
bool is_unset_by_user(const LaunchPlan& plan, std::string_view name) {
  const std::vector<EnvironmentChange>& changes = plan.setup.environment;
  return std::any_of(changes.begin(), changes.end(), [name](const EnvironmentChange& change) {
    return change.name == name && change.kind == EnvironmentChange::Kind::kUnset;
  });
}

/// In the order of the contract.
WorkerEnvironment::Variables shared_variables(const LaunchPlan& plan, const NodePlan& node, const Environment& base,
                                              const RunFacts& facts) {
  const std::string world = std::to_string(plan.world_size);
  const std::string nodes = std::to_string(plan.num_nodes);
  const std::string node_rank = std::to_string(node.node_rank);
  WorkerEnvironment::Variables variables = {
      {"WORLD_SIZE", world},
      {"LOCAL_WORLD_SIZE", std::to_string(node.local_world_size())},
      {"NODE_RANK", node_rank},
      {"GROUP_RANK", node_rank},
      {"GROUP_WORLD_SIZE", nodes},
      {"ROLE_NAME", plan.role},
      {"ROLE_WORLD_SIZE", plan.role_world_size == 0 ? world : std::to_string(plan.role_world_size)},
      {"MASTER_ADDR", facts.master_addr.empty() ? plan.master_addr : facts.master_addr},
      {"MASTER_PORT", std::to_string(facts.master_port)},
      {"TORCHELASTIC_RUN_ID", plan.run_name},
      {"TORCHELASTIC_RESTART_COUNT", std::to_string(facts.restart_count)},
      {"TORCHELASTIC_MAX_RESTARTS", std::to_string(plan.max_restarts.value)},
      {"TORCHELASTIC_USE_AGENT_STORE", plan.rank_0_hosts_store ? "False" : "True"},
      {"PYTHONFAULTHANDLER", base.get("PYTHONFAULTHANDLER").value_or("1")},
      {"TORCHELASTIC_SIGNALS_TO_HANDLE", plan.stop_signals.names},
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", base.get("TORCH_NCCL_ASYNC_ERROR_HANDLING").value_or("1")},
  };
  if (const auto users = base.get("PYTHONBREAKPOINT")) variables.emplace_back("PYTHONBREAKPOINT", *users);
  std::erase_if(variables, [&](const auto& variable) { return is_unset_by_user(plan, variable.first); });
  const auto threads = plan.omp_num_threads > 0 ? std::to_string(plan.omp_num_threads) : base.get("OMP_NUM_THREADS");
  if (threads && !has_threads_of_their_own(node)) variables.emplace_back("OMP_NUM_THREADS", *threads);
  add_visible_devices(variables, node, base);
  variables.emplace_back("LRUN_RUN_ID", plan.run_id);
  variables.emplace_back("LRUN_STRATEGY", text_of(plan.strategy.value));
  variables.emplace_back("LRUN_ACCELERATOR", text_of(plan.accelerator.value));
  variables.emplace_back("LRUN_NUM_NODES", nodes);
  variables.emplace_back("LRUN_PROCESS_GROUP_BACKEND", text_of(plan.process_group_backend.value));
  if (!facts.memory_folder.empty()) variables.emplace_back("LRUN_MEMORY_DIR", facts.memory_folder);
  if (plan.seed.value) variables.emplace_back("LRUN_SEED", std::to_string(*plan.seed.value));
  if (plan.strategy.value == Strategy::kTpu) add_shared_tpu_variables(variables, plan, node, base);
  if (plan.strategy.value == Strategy::kDeepspeed) {
    variables.emplace_back("CROSS_RANK", node_rank);
    variables.emplace_back("CROSS_SIZE", nodes);
    variables.emplace_back("LOCAL_SIZE", std::to_string(node.local_world_size()));
  }
  if (is_horovod(plan)) {
    for (auto& variable : horovod_variables(plan, node, base, facts)) variables.push_back(std::move(variable));
  }
  return variables;
}

/// The process's devices as LibTorch spells them. \param first_gpu  the ordinal of the first one
std::string device_list(const std::vector<DeviceId>& devices, int first_gpu, GpuVendor vendor) {
  const char* const gpu = vendor == GpuVendor::kIntel ? "xpu:" : "cuda:";  // ROCm's LibTorch says 'cuda', too
  std::string text;
  int ordinal = first_gpu;
  for (const DeviceId& device : devices) {
    if (!text.empty()) text += ',';
    if (device.kind == DeviceKind::kGpu) text += gpu + std::to_string(ordinal++);
    if (device.kind == DeviceKind::kCpu) text += "cpu";
    if (device.kind == DeviceKind::kTpu) text += "xla:0";  // the process sees no other
  }
  return text;
}

/// The number of the plan's nodes before `node_rank`, by their number of workers.
std::map<int, int> nodes_by_workers(const LaunchPlan& plan, int node_rank) {
  std::map<int, int> nodes;
  for (std::size_t i = 0; i < plan.ranks_by_node.size() && static_cast<int>(i) < node_rank; ++i) {
    ++nodes[plan.ranks_by_node[i]];
  }
  if (plan.is_of_one_rank) return nodes;
  for (const NodePlan& node : plan.nodes) {
    if (node.node_rank < node_rank) ++nodes[static_cast<int>(node.workers.size())];
  }
  return nodes;
}

}  // namespace

const ContractVariable* find_contract_variable(std::string_view name) {
  const ContractVariable* const found = find_in(name, kContract);
  return found != nullptr ? found : find_in(name, kHorovodContract);
}

bool is_given_by_lrun(std::string_view name) {
  constexpr std::string_view kUsersIsKept[] = {"OMP_NUM_THREADS", "TORCH_NCCL_ASYNC_ERROR_HANDLING",
                                               "PYTHONFAULTHANDLER", "PYTHONBREAKPOINT", "CUDA_VISIBLE_DEVICES"};
  return is_in(name, kPrivate) || (is_contract(name) && !is_in(name, kUsersIsKept));
}

WorkerEnvironment::WorkerEnvironment(const LaunchPlan& plan, const NodePlan& node, const Environment& base,
                                     const RunFacts& facts)
    : shared_contract_(shared_variables(plan, node, base, facts)),
      error_file_directory_(facts.error_file_directory),
      other_roles_before_(plan.other_roles_before),
      is_horovod_(is_horovod(plan)),
      is_for_tpu_(plan.strategy.value == Strategy::kTpu),
      is_alone_(plan.num_nodes == 1),
      isolate_gpus_(plan.isolate_gpus),
      gpu_vendor_(node.gpu_vendor) {
  const bool is_users = base.has("PYTHONBREAKPOINT") || is_unset_by_user(plan, "PYTHONBREAKPOINT");
  if (plan.setup.debug_rank.given() && !is_users) debug_rank_ = plan.setup.debug_rank.value;
  if (is_horovod_) {
    const bool told = !facts.nodes_by_workers.empty();
    nodes_by_workers_ = told ? facts.nodes_by_workers : nodes_by_workers(plan, plan.num_nodes);
    earlier_by_workers_ = told ? facts.earlier_by_workers : nodes_by_workers(plan, node.node_rank);
  }
  shared_.reserve(base.variables().size() + shared_contract_.size());
  for (const auto& [name, value] : base.variables()) {
    if (is_horovod_ && find_in(name, kHorovodContract) != nullptr) continue;  // added with the contract below
    const Strategy strategy = plan.strategy.value;
    const bool unwanted = is_unwanted(name, base, strategy) && !is_wanted(plan.setup.environment, name);
    const bool is_of_outer_run =
        (name == "LRUN_SEED" && !plan.seed.value) || (name == "LRUN_MEMORY_DIR" && facts.memory_folder.empty());
    if (unwanted || is_of_outer_run) {
      removed_.push_back(name);
    } else if (!is_contract(name, strategy)) {
      shared_.push_back(entry_of(name, value));
    }
  }
  for (const auto& [name, value] : shared_contract_) shared_.push_back(entry_of(name, value));
}

WorkerEnvironment::Variables WorkerEnvironment::of(const WorkerPlan& worker) const {
  const std::string rank = std::to_string(worker.rank);
  const std::string local_rank = std::to_string(worker.local_rank);
  // With one device a process, the local rank counts the node's devices; with all of them, it begins at the first.
  const int first_gpu = isolate_gpus_ || worker.devices.size() > 1 ? 0 : worker.local_rank;
  Variables variables = {
      {"RANK", rank},
      {"LOCAL_RANK", isolate_gpus_ ? "0" : local_rank},
      {"ROLE_RANK", std::to_string(worker.rank - other_roles_before_)},
      {"TORCHELASTIC_ERROR_FILE",
       error_file_directory_.empty() ? "" : error_file_directory_ + "/" + local_rank + "/error.json"},
      {"LRUN_DEVICES", device_list(worker.devices, first_gpu, gpu_vendor_)},
  };
  if (debug_rank_ && worker.rank != *debug_rank_) variables.emplace_back("PYTHONBREAKPOINT", "0");
  if (worker.omp_num_threads > 0) variables.emplace_back("OMP_NUM_THREADS", std::to_string(worker.omp_num_threads));
  if (worker.visible_devices) variables.emplace_back(visibility_variable(gpu_vendor_), *worker.visible_devices);
  if (is_horovod_) {
    for (auto& variable : horovod_variables_of(worker, earlier_by_workers_, nodes_by_workers_))
      variables.push_back(std::move(variable));
  }
  if (is_for_tpu_) add_tpu_variables_of(worker, is_alone_, variables);
  return variables;
}

std::vector<std::string> replaced_variables(const LaunchPlan& plan, const Environment& base) {
  const NodePlan& node = plan.nodes.front();
  const WorkerEnvironment environment(plan, node, base, {.master_port = plan.master_port.value_or(0)});
  std::map<std::string, std::string> of_all(environment.shared_contract().begin(), environment.shared_contract().end());
  std::map<std::string, std::string> of_first;
  for (auto& [name, value] : environment.of(node.workers.front())) of_first[name] = value;
  std::vector<std::string> replaced;
  for (const auto& [name, value] : base.variables()) {
    const auto shared = of_all.find(name);
    const auto own = of_first.find(name);
    const bool other_for_all = shared != of_all.end() && shared->second != value;
    const bool other_for_some = own != of_first.end() && (own->second != value || plan.world_size > 1);
    if (!name.starts_with("LRUN_") && (other_for_all || other_for_some)) replaced.push_back(entry_of(name, value));
  }
  return replaced;
}

}  // namespace lrun::launcher
