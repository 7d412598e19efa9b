#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/cpu_topology.h"
#include "cluster/device_request.h"

namespace lrun::launcher {

/// Who made a node's GPUs: decides in which variable programs look for the GPUs they may use.
enum class GpuVendor { kNvidia, kAmd, kIntel };

/// A process that computes on a GPU.
struct GpuProcess {
  int pid = 0;          ///< as the driver knows it: in a container it may be another's
  int memory_mib = -1;  ///< of the GPU; -1: the driver does not say
  std::string name;     ///< empty when it cannot be seen from here

  bool operator==(const GpuProcess&) const = default;
};

/// Who may use a GPU, as its administrator set it.
enum class ComputeMode {
  kShared,      ///< any number of processes
  kExclusive,   ///< one process at a time
  kProhibited,  ///< none
};

/// A device that programs started here would see: a GPU, or an instance that a GPU in MIG mode was divided into.
struct Gpu {
  int index = 0;     ///< the driver's (PCI bus order); an instance has its GPU's; -1: unknown
  std::string uuid;  ///< 'GPU-…', of an instance 'MIG-…'; empty when the GPU is lost or has none
  std::string
      visible_as;     ///< how a worker's visibility variable has to name it: as the user's own does, else the index
  bool lost = false;  ///< fell off the bus: the driver still counts it, nothing can use it

  std::string gpu_uuid = {};     ///< of an instance: the GPU it is a part of
  std::string name = {};         ///< the model; empty when unknown
  std::string pci_address = {};  ///< '0000:10:00.0', as sysfs writes it; empty when unknown
  int numa_node = -1;            ///< the closest one; -1: unknown, or not asked
  ComputeMode mode = ComputeMode::kShared;
  std::vector<GpuProcess> processes = {};  ///< that compute on it now; servers that share it out are left out

  [[nodiscard]] bool is_instance() const { return uuid.starts_with("MIG-"); }
  bool operator==(const Gpu&) const = default;
};

/// What came of the search for GPUs.
enum class GpuAnswer {
  kNotAsked,         ///< nothing in the request depends on it
  kNoLibrary,        ///< there is no libnvidia-ml.so.1, and no GPU of another vendor: a machine without GPUs
  kDriverNotLoaded,  ///< NVIDIA's library is there, the kernel driver is not
  kFailed,           ///< it crashed, hung or refused; GpuInventory::detail says how
  kCounted,          ///< `gpus` is the truth, also when it is empty
};

struct GpuInventory {
  GpuAnswer answer = GpuAnswer::kNotAsked;
  std::vector<Gpu> gpus;
  std::string detail;  ///< for people: why there are none, or fewer than the machine has
  GpuVendor vendor = GpuVendor::kNvidia;

  bool operator==(const GpuInventory&) const = default;
};

/// TPUs that programs started here could use.
struct TpuInventory {
  bool asked = false;  ///< else nothing in the request depends on it
  int chips = 0;
  int cores_per_chip = 1;  ///< 2 of TPU v2 and v3

  bool operator==(const TpuInventory&) const = default;
};

/// What a plan depends on: looking at the rest would cost every start.
struct Questions {
  bool gpus = false;      ///< open the driver
  bool cpus = false;      ///< read the cgroups' CPU quotas; without, `cpus` of a node is by affinity alone
  bool topology = false;  ///< read cores and NUMA nodes, and the GPUs' places
  std::vector<std::string> names = {};  ///< which of these hosts is this one
  bool manager = false;                 ///< whether Slurm started this launcher as one of several
  bool other_managers = false;          ///< whether any other manager did
  bool tpus = false;                    ///< count the chips of TPUs
};

/// One machine of an allocation.
struct AllocatedNode {
  std::string name;
  int cpus = 1;  ///< usable ones: affinity and cgroup quota are taken off
  GpuInventory gpus;
  CpuTopology topology = {};                 ///< of the CPUs that may be used; empty when it was not asked
  DeviceRequest devices = {};                ///< what a list of hosts or --include says of this node; kNone: nothing
  std::string devices_origin = {};           ///< where it says so: 'hosts.txt'
  std::vector<std::string> also_named = {};  ///< of the names that were asked about, those that mean this node
  TpuInventory tpus = {};

  bool operator==(const AllocatedNode&) const = default;
};

/// What a manager that starts a launcher for every rank, several on a node, tells one of them.
struct TaskPlace {
  int rank = 0;        ///< of the one worker that this launcher is to start
  int ranks = 1;       ///< of the job: launchers
  int local_rank = 0;  ///< on this node
  int ranks_here = 1;  ///< on this node
  int node_rank = 0;
  int nodes = 1;
  std::vector<int> ranks_by_node = {};  ///< how many each of the nodes has
  std::string tasks_a_node = {};        ///< how N launchers a node are asked for, before N: 'srun --ntasks-per-node='

  bool operator==(const TaskPlace&) const = default;
};

/// What a cluster's manager tells each of the launchers that it started, one a node or one a rank: all find the same
/// but for the rank.
struct JobPlace {
  std::string run_name;  ///< no other run has it; empty: the manager gives none
  std::string host;      ///< that launchers meet on: the one of node rank 0; empty: the manager does not say it
  int port = 0;          ///< 0: the usual one
  int node_rank = 0;     ///< of this host

  std::string nodes_by = {};      ///< which variable tells the number of nodes; empty: the manager as a whole
  std::string node_rank_by = {};  ///< the same of the rank
  std::string host_by = {};       ///< and of the host
  std::string port_by = {};       ///< and of the port
  bool knows_nodes = true;        ///< the allocation's nodes are all of the job; else only the user knows how many
  bool replaces_nodes = false;    ///< the manager starts a node again that ended
  int tasks = 1;                  ///< launchers of the job, where it counts these and not nodes
  int tasks_here = 1;             ///< those of them on this host; several would each start all of its workers
  std::string one_a_node = {};    ///< how one task a node is asked for: 'mpirun --map-by ppr:1:node'
  int listener = -1;  ///< a socket that listens there already, for node rank 0; -1: none. Belongs to the process.
  std::optional<TaskPlace> task = {};  ///< of a launcher that starts one rank; empty: one that starts all of its node

  bool operator==(const JobPlace&) const = default;
};

/// Where a run may be placed, and who says so.
struct Allocation {
  std::vector<AllocatedNode> nodes;  ///< never empty; the first is this host, the others are in rank order
  std::string source;                ///< 'this host', 'Slurm step 12.0'
  std::string reason;                ///< why that source was chosen, from which variables
  std::optional<JobPlace> job = {};  ///< empty: the user says how nodes meet
  int nodes_to_start = 0;            ///< of the manager's job: nothing runs there before its starter does it; 0: none
  int tasks_of_step = 0;             ///< of Slurm, each of which is a launcher like this one; 0: not in a step
  int gpus_given = 0;                ///< by the manager to its job on this node; 0: it does not say
  int cpus_given = 0;                ///< the same of CPUs
  std::vector<std::string> names_of_host = {};  ///< of the nodes that are this host, where it is several of them
  std::vector<std::string> listed_hosts = {};   ///< of a job whose manager starts nothing on them; empty: no such job

  bool operator==(const Allocation&) const = default;
};

}  // namespace lrun::launcher
