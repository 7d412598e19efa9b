#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "plan/launch_plan.h"

namespace lrun::launcher {

/// The contract between launcher and worker: every variable of a worker, in the order of the manual. Tests compare
/// lrun(1) with this table.
struct ContractVariable {
  enum class Scope { kRun, kNode, kRank };  ///< equal for all workers, for those of a node, or each its own
  std::string_view name;
  Scope scope;
  std::string_view meaning;
  std::optional<Strategy> strategy = {};  ///< the only one that has it; empty: all have it
};

inline constexpr ContractVariable kContract[] = {
    {"RANK", ContractVariable::Scope::kRank, "this worker among all, 0 to WORLD_SIZE-1"},
    {"LOCAL_RANK", ContractVariable::Scope::kRank, "this worker on its node; 0 with --isolate-gpus"},
    {"WORLD_SIZE", ContractVariable::Scope::kRun, "workers of the run"},
    {"LOCAL_WORLD_SIZE", ContractVariable::Scope::kNode, "workers on this node"},
    {"NODE_RANK", ContractVariable::Scope::kNode, "this node among all; the same as GROUP_RANK"},
    {"GROUP_RANK", ContractVariable::Scope::kNode, "this node's launcher in the rendezvous"},
    {"GROUP_WORLD_SIZE", ContractVariable::Scope::kRun, "launchers in the rendezvous, one per node"},
    {"ROLE_NAME", ContractVariable::Scope::kRun, "the value of --role, else 'default'"},
    {"ROLE_RANK", ContractVariable::Scope::kRank, "this worker among those of its role"},
    {"ROLE_WORLD_SIZE", ContractVariable::Scope::kRun, "workers of the role"},
    {"MASTER_ADDR", ContractVariable::Scope::kRun, "host of the workers' store"},
    {"MASTER_PORT", ContractVariable::Scope::kRun, "port of the workers' store, already listening"},
    {"TORCHELASTIC_RUN_ID", ContractVariable::Scope::kRun, "the value of --rdzv-id, else the name of the run"},
    {"TORCHELASTIC_RESTART_COUNT", ContractVariable::Scope::kRun, "restarts so far"},
    {"TORCHELASTIC_MAX_RESTARTS", ContractVariable::Scope::kRun, "restarts allowed"},
    {"TORCHELASTIC_USE_AGENT_STORE", ContractVariable::Scope::kRun,
     "'True': workers are clients of the launcher's store; 'False': rank 0 hosts it"},
    {"TORCHELASTIC_ERROR_FILE", ContractVariable::Scope::kRank,
     "where the worker may leave its exception as JSON; empty without log files"},
    {"PYTHONFAULTHANDLER", ContractVariable::Scope::kRun,
     "1: Python prints where it crashed; a value set by the user is kept, also an empty one"},
    {"PYTHONBREAKPOINT", ContractVariable::Scope::kRank,
     "0 in ranks beside that of --debug-rank: breakpoint() does nothing; a value set by the user is kept"},
    {"TORCHELASTIC_SIGNALS_TO_HANDLE", ContractVariable::Scope::kRun, "signals on which the launcher stops the run"},
    {"TORCH_NCCL_ASYNC_ERROR_HANDLING", ContractVariable::Scope::kRun, "1; a value set by the user is kept"},
    {"OMP_NUM_THREADS", ContractVariable::Scope::kRank,
     "this worker's share of the CPUs; a value set by the user is kept"},
    {"CUDA_VISIBLE_DEVICES", ContractVariable::Scope::kRank,
     "the node's chosen GPUs, or with --isolate-gpus the worker's one; else inherited"},
    {"HIP_VISIBLE_DEVICES", ContractVariable::Scope::kRank, "the same for GPUs of AMD"},
    {"ZE_AFFINITY_MASK", ContractVariable::Scope::kRank, "the same for GPUs of Intel"},
    {"CUDA_DEVICE_ORDER", ContractVariable::Scope::kRun,
     "'PCI_BUS_ID' where lrun chose GPUs by number; a value set by the user is kept"},
    {"LRUN_RUN_ID", ContractVariable::Scope::kRun, "name of the run, the same on all nodes"},
    {"LRUN_STRATEGY", ContractVariable::Scope::kRun, "'ddp' or another strategy, or 'single' for one device in all"},
    {"LRUN_ACCELERATOR", ContractVariable::Scope::kRun, "'cpu', 'gpu' or 'tpu'"},
    {"LRUN_DEVICES", ContractVariable::Scope::kRank,
     "devices of this process as LibTorch spells them: 'cpu', 'cuda:1', 'cpu,cpu', 'cuda:0,cuda:1', 'xpu:0', 'xla:0'"},
    {"LRUN_NUM_NODES", ContractVariable::Scope::kRun, "nodes of the run"},
    {"LRUN_PROCESS_GROUP_BACKEND", ContractVariable::Scope::kRun, "'nccl', 'gloo', 'shm', 'shm+gloo' or 'xla'"},
    {"LRUN_PROGRESS_FD", ContractVariable::Scope::kRank,
     "descriptor and offset of memory where liblrun reports each step, as in '3:64'; under torchrun's name only with "
     "--hang-timeout"},
    {"LRUN_MEMORY_DIR", ContractVariable::Scope::kNode,
     "a folder in memory that outlives the workers and not the run; absent with --memory-dir 0, under torchrun's "
     "name, and where /dev/shm cannot be used"},
    {"LRUN_SEED", ContractVariable::Scope::kRun, "the seed; absent when none was given"},
    {"CROSS_RANK", ContractVariable::Scope::kNode, "NODE_RANK under DeepSpeed's name", Strategy::kDeepspeed},
    {"CROSS_SIZE", ContractVariable::Scope::kRun, "nodes of the run under DeepSpeed's name", Strategy::kDeepspeed},
    {"LOCAL_SIZE", ContractVariable::Scope::kNode, "LOCAL_WORLD_SIZE under DeepSpeed's name", Strategy::kDeepspeed},
    {"PJRT_DEVICE", ContractVariable::Scope::kRun, "'TPU', or 'CPU' for a trial", Strategy::kTpu},
    {"PJRT_LOCAL_PROCESS_COUNT", ContractVariable::Scope::kNode, "workers on this node", Strategy::kTpu},
    {"PJRT_LOCAL_PROCESS_RANK", ContractVariable::Scope::kRank, "this worker on its node", Strategy::kTpu},
    {"TPU_VISIBLE_CHIPS", ContractVariable::Scope::kRank, "the chip of this worker", Strategy::kTpu},
    {"TPU_CHIPS_PER_PROCESS_BOUNDS", ContractVariable::Scope::kRun, "one chip per worker: '1,1,1'", Strategy::kTpu},
    {"TPU_PROCESS_BOUNDS", ContractVariable::Scope::kRun, "the mesh of the workers, such as '2,4,1'", Strategy::kTpu},
    {"TPU_PROCESS_ADDRESSES", ContractVariable::Scope::kRun, "the addresses at which libtpu of the workers listens",
     Strategy::kTpu},
    {"TPU_PROCESS_PORT", ContractVariable::Scope::kRank, "the port of this worker among them", Strategy::kTpu},
    {"CLOUD_TPU_TASK_ID", ContractVariable::Scope::kRank, "this worker's place in the mesh", Strategy::kTpu},
};

/// The row of a variable that lrun gives to workers, also for Horovod. Null for any other.
const ContractVariable* find_contract_variable(std::string_view name);

/// Whether lrun gives this variable to workers, or removes it, whatever the user sets. False where the user's value is
/// kept.
bool is_given_by_lrun(std::string_view name);

/// The facts that only the start of a run decides.
struct RunFacts {
  int master_port = 0;      ///< of the socket that the workers' store listens on
  std::string master_addr;  ///< from the rendezvous; empty: the plan's
  int restart_count = 0;
  std::string error_file_directory;  ///< '<log dir>/<run>/attempt_0'; empty: no log files
  std::string memory_folder = {};    ///< for LRUN_MEMORY_DIR; empty: there is none
  // Only for Horovod:
  std::map<int, int> nodes_by_workers = {};    ///< the number of nodes by their number of workers; empty: the plan's
  std::map<int, int> earlier_by_workers = {};  ///< the same for the nodes before this one
  std::string node_name = {};                  ///< unique among the nodes; empty: the plan's
  std::string network_interface = {};          ///< others reach this node by it; empty: unknown

  bool operator==(const RunFacts&) const = default;
};

/// The environments of one node's workers. Their common part is built once, so that a thousand workers cost a thousand
/// short lists and not a thousand copies of the launcher's environment.
///
/// LRUN_DEVICES has one entry for each device of the process, separated by commas, without blanks: 'cpu', or 'cuda:N'
/// where N counts the GPUs that the process sees (after CUDA_VISIBLE_DEVICES). Rank variables of other launchers
/// (SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK, …) would contradict ours and are removed; variables of the job stay.
/// LRUN_JOB_SECRET, LRUN_ETCD_USER, LRUN_SRUN_PORT, LRUN_SRUN_FOLDER, LRUN_NTASKS_PER_NODE, LRUN_MODULE_PYTHON and the
/// variables of an lrun around this one never reach a worker.
class WorkerEnvironment {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;

  /// \param base  the environment that workers start from: lrun's own, changed as the plan's setup says. Nothing is
  ///              kept by reference.
  WorkerEnvironment(const LaunchPlan& plan, const NodePlan& node, const Environment& base, const RunFacts& facts);

  /// 'NAME=value' of all variables that are equal for the node's workers: inherited ones and ours. Disjoint from of().
  [[nodiscard]] const std::vector<std::string>& shared() const { return shared_; }
  /// The rest, for one worker of the node.
  [[nodiscard]] Variables of(const WorkerPlan& worker) const;

  /// The part of shared() that the contract names, with the values that are the user's.
  [[nodiscard]] const Variables& shared_contract() const { return shared_contract_; }
  /// The names of `base` that workers do not get, in order.
  [[nodiscard]] const std::vector<std::string>& removed() const { return removed_; }

 private:
  std::vector<std::string> shared_;
  Variables shared_contract_;
  std::vector<std::string> removed_;
  std::string error_file_directory_;
  int other_roles_before_ = 0;
  bool is_horovod_ = false;
  std::map<int, int> nodes_by_workers_;
  std::map<int, int> earlier_by_workers_;
  bool is_for_tpu_ = false;
  bool is_alone_ = true;  ///< no other nodes
  bool isolate_gpus_ = false;
  std::optional<int> debug_rank_;  ///< breakpoint() is for this rank only
  GpuVendor gpu_vendor_ = GpuVendor::kNvidia;
};

/// Variables of `base`, as in 'RANK=3', that have other values for workers of the plan's first node. Settings of lrun
/// (LRUN_…) are left out.
std::vector<std::string> replaced_variables(const LaunchPlan& plan, const Environment& base);

}  // namespace lrun::launcher
