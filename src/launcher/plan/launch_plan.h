#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/duration.h"
#include "base/environment.h"
#include "cluster/allocation.h"
#include "cluster/python_choice.h"
#include "plan/launch_request.h"
#include "plan/output_plan.h"
#include "plan/personality.h"
#include "plan/rendezvous_plan.h"
#include "plan/stop_signals.h"

namespace lrun::launcher {

/// A device of one node.
struct DeviceId {
  DeviceKind kind = DeviceKind::kCpu;
  std::string id;      ///< '2' or a UUID for a GPU, the number of a TPU chip, the index for a CPU rank
  int numa_node = -1;  ///< the closest one; -1: unknown, or not needed

  bool operator==(const DeviceId&) const = default;
};

/// One process to start.
struct WorkerPlan {
  int rank = 0;
  int local_rank = 0;
  int node_rank = 0;
  std::vector<DeviceId> devices;               ///< one under ddp; all of the node under dp and ddp2
  std::optional<std::string> visible_devices;  ///< for the vendor's variable; empty: the launcher's is inherited
  std::vector<int> cpus;                       ///< it may run on only these; empty: on all of the launcher's
  std::vector<int> numa_nodes;                 ///< of `cpus`
  int omp_num_threads = 0;                     ///< of its own `cpus`; 0: as LaunchPlan::omp_num_threads says

  bool operator==(const WorkerPlan&) const = default;
};

/// One node's share. The single-node launcher runs nodes[0].
struct NodePlan {
  int node_rank = 0;
  std::string name;  ///< host name; empty: of another node, and the rendezvous is to decide
  int base_rank = 0;
  std::vector<DeviceId> devices;
  std::vector<WorkerPlan> workers;
  int workers_of_others = 0;                  ///< on this node, which other launchers start
  GpuVendor gpu_vendor = GpuVendor::kNvidia;  ///< decides which variable `visible_devices` are for

  [[nodiscard]] int local_world_size() const { return static_cast<int>(workers.size()) + workers_of_others; }
  bool operator==(const NodePlan&) const = default;
};

/// Every decision of a run before anything is started: same request, environment and allocation, same plan.
struct LaunchPlan {
  std::string run_id;      ///< unique; the name of the run directory
  std::string run_name;    ///< --rdzv-id, else run_id; the name for workers and in torchrun's folders
  bool has_head = false;   ///< an lrun without workers started this one, and made run_id
  std::string role;        ///< of all workers
  std::string allocation;  ///< where the nodes come from, for --dry-run
  Personality personality;
  Setting<Strategy> strategy;
  bool watches_for_liblrun = false;  ///< the strategy needs liblrun, and the program may not have it
  Setting<DeviceKind> accelerator;
  std::string accelerator_word;  ///< the user's: 'cuda'; empty: it is the value's
  Setting<GroupBackend> process_group_backend;
  Setting<DeviceRequest> devices;      ///< as asked, for --dry-run
  std::vector<std::string> argv;       ///< the command of workers, the Python interpreter included; before macros
  std::optional<PythonChoice> python;  ///< the interpreter in `argv`; empty: lrun has put none there
  WorkerSetup setup;
  std::string cache_folder;  ///< of this node, private to the user; empty: workers need none
  int world_size = 1;
  int role_world_size = 0;     ///< workers of `role`; 0: all are
  int other_roles_before = 0;  ///< workers of other roles with lower ranks than ours
  int num_nodes = 1;
  bool is_of_one_rank = false;     ///< each rank has a launcher of its own, and `nodes` is this one's share
  std::vector<int> ranks_by_node;  ///< of such a run: the number of ranks on each node
  std::vector<NodePlan> nodes;
  std::string master_addr;                   ///< '127.0.0.1' on one node; empty: the rendezvous decides
  std::optional<int> master_port;            ///< fixed by the user; empty: the store's socket decides
  bool any_port_will_do = false;             ///< where master_port is taken
  bool rank_0_hosts_store = false;           ///< the worker of rank 0 does; lrun only reserves the port for it
  std::optional<RendezvousPlan> rendezvous;  ///< with other launchers; empty: there are none
  Setting<std::optional<std::uint64_t>> seed;
  Setting<std::string> log_dir;
  OutputPlan output;
  bool standard_input = false;  ///< rank 0 alone reads lrun's; otherwise the personality decides
  Setting<Duration> grace;
  Setting<Duration> settle;         ///< between a worker's failure and the end of the others
  Duration settle_for_victims{0};   ///< the same when the failed one looks like a victim of another
  Duration settle_at_start{0};      ///< the same when it failed in its first second
  Setting<Duration> timeout;        ///< of the whole run; zero: none
  Setting<Duration> start_timeout;  ///< until all workers are connected to the store; zero: none
  Setting<Duration> hang_timeout;   ///< without any progress of any worker; zero: none
  HangSignal hang_signal = HangSignal::kProgress;
  OnHang on_hang = OnHang::kKill;
  StopSignals stop_signals = default_stop_signals();
  Setting<int> max_restarts;
  Setting<Duration> restart_backoff;  ///< before the second restart in a row; doubles from then on
  /// A file, a folder or a pattern; with it `max_restarts` counts from the newest checkpoint there on. Empty: none.
  Setting<std::string> checkpoint_path;
  Setting<NoticeSource> notice;  ///< that this machine is about to go
  int omp_num_threads = 0;       ///< 0: leave the variable alone
  bool isolate_gpus = false;
  Setting<Binding> bind{Binding::kNone};
  std::vector<std::string> warnings;  ///< one line each, printed before the start
  std::vector<std::string> notes;     ///< the same
  std::string program_hint;           ///< about PROGRAM, for the end of a run that did not succeed; empty: none

  bool operator==(const LaunchPlan&) const = default;
};

/// Of several launchers on a node only one prints what is the same for all.
inline bool speaks_for_node(const LaunchPlan& plan) {
  return !plan.is_of_one_rank || plan.nodes.front().workers.front().local_rank == 0;
}

/// The same for what all nodes of a job tell: where people read it in one place, node rank 0 prints it.
inline bool speaks_for_job(const LaunchPlan& plan) {
  if (!plan.rendezvous || !plan.rendezvous->shares_screen) return speaks_for_node(plan);
  return plan.rendezvous->node_rank.value_or(0) == 0;
}

}  // namespace lrun::launcher
