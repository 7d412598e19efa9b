#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cpu_topology.h"
#include "cluster/device_request.h"

namespace lrun::launcher {

/// Of a job. A typing mistake must not lead to a plan of gigabytes.
inline constexpr int kMostNodes = 65'536;

/// The maker of a node's GPUs. It decides which variable tells programs the GPUs that they may use.
enum class GpuVendor { kNvidia, kAmd, kIntel };

/// A process that computes on a GPU.
struct GpuProcess {
  int pid = 0;          ///< as the driver knows it; inside a container the number may mean another process
  int memory_mib = -1;  ///< memory of the GPU that it uses; -1: unknown
  std::string name;     ///< empty when this process cannot read it

  bool operator==(const GpuProcess&) const = default;
};

/// How many processes may use a GPU, as the administrator set it.
enum class ComputeMode {
  kShared,      ///< any number of processes
  kExclusive,   ///< one process at a time
  kProhibited,  ///< none
};

/// A device that programs started here would see: a GPU, or one MIG instance of a GPU.
struct Gpu {
  int index = 0;           ///< the driver's, in PCI bus order; an instance has the index of its GPU; -1: unknown
  std::string uuid;        ///< 'GPU-…', or 'MIG-…' of an instance; empty when the GPU is lost or has no UUID
  std::string visible_as;  ///< its name in a worker's visibility variable: the one that the user's own variable has,
                           ///< else the index
  bool lost = false;       ///< it fell off the bus: the driver still counts it, but no program can use it

  std::string gpu_uuid = {};     ///< of an instance: the UUID of the GPU that it is a part of
  std::string name = {};         ///< the model; empty when unknown
  std::string pci_address = {};  ///< '0000:10:00.0', as sysfs writes it; empty when unknown
  int numa_node = -1;            ///< the closest NUMA node; -1: unknown, or not looked up
  ComputeMode mode = ComputeMode::kShared;
  std::vector<GpuProcess> processes =
      {};  ///< that compute on it now, without the servers that share it between programs

  [[nodiscard]] bool is_instance() const { return uuid.starts_with("MIG-"); }
  bool operator==(const Gpu&) const = default;
};

/// The result of the search for GPUs.
enum class GpuAnswer {
  kNotAsked,         ///< the request does not depend on GPUs
  kNoLibrary,        ///< no libnvidia-ml.so.1 and no GPU of another vendor: a machine without GPUs
  kDriverNotLoaded,  ///< NVIDIA's library is installed, but the kernel driver is not loaded
  kFailed,           ///< the driver crashed, hung or refused; GpuInventory::detail has the reason
  kCounted,          ///< `gpus` is complete, also when it is empty
};

struct GpuInventory {
  GpuAnswer answer = GpuAnswer::kNotAsked;
  std::vector<Gpu> gpus;
  std::string detail;  ///< for people: why there are no GPUs, or fewer than the machine has
  GpuVendor vendor = GpuVendor::kNvidia;

  bool operator==(const GpuInventory&) const = default;
};

/// The TPUs that programs started here could use.
struct TpuInventory {
  bool asked = false;  ///< false: the request does not depend on TPUs
  int chips = 0;
  int cores_per_chip = 1;  ///< 2 of TPU v2 and v3

  bool operator==(const TpuInventory&) const = default;
};

/// The facts that a plan depends on. Looking up the others would slow down every start.
struct Questions {
  bool gpus = false;  ///< ask the GPU driver
  bool cpus = false;  ///< read the CPU quotas of cgroups; without, `cpus` of a node comes from the affinity mask only
  bool topology = false;                  ///< read cores, NUMA nodes, and the NUMA node of each GPU
  std::vector<std::string> names = {};    ///< find which of these names mean this host
  bool manager = false;                   ///< find out whether Slurm started this launcher as one of several
  bool other_managers = false;            ///< the same for all other managers
  bool tpus = false;                      ///< count the chips of TPUs
  std::vector<std::string> folders = {};  ///< find which of these are on a network file system
};

/// One machine of an allocation.
struct AllocatedNode {
  std::string name;
  int cpus = 1;  ///< usable ones, by affinity mask and cgroup quota
  GpuInventory gpus;
  CpuTopology topology = {};  ///< of the usable CPUs; empty when it was not looked up
  DeviceRequest devices =
      {};  ///< the devices that a list of hosts or --include names for this node; kNone: it names none
  std::string devices_origin = {};           ///< the place that names them: 'hosts.txt'
  std::vector<std::string> also_named = {};  ///< those of Questions::names that mean this node
  TpuInventory tpus = {};
  std::map<std::string, std::string> network_folders =
      {};                         ///< those of Questions::folders that are on a network file system, with its name
  std::string local_folder = {};  ///< for what would otherwise be made there; empty: nothing would, or no place
  std::string local_folder_problem = {};  ///< why there is no place: "'/tmp/a' belongs to another user"
  bool is_pod = false;                    ///< of Kubernetes, where a name of another pod appears once that has started

  bool operator==(const AllocatedNode&) const = default;
};

/// The place of one launcher where a manager starts one launcher per rank, several on a node.
struct TaskPlace {
  int rank = 0;        ///< of the one worker that this launcher starts
  int ranks = 1;       ///< launchers of the job
  int local_rank = 0;  ///< on this node
  int ranks_here = 1;  ///< on this node
  int node_rank = 0;
  int nodes = 1;
  std::vector<int> ranks_by_node = {};  ///< the number of ranks on each node
  std::string starter = {};             ///< as JobPlace::starter

  bool operator==(const TaskPlace&) const = default;
};

/// The job as a cluster's manager describes it to each launcher that it started, one per node or one per rank. The
/// launchers of a job get equal values except for the rank.
struct JobPlace {
  std::string run_name;                 ///< unique to the run; empty: the manager gives no name
  std::string host;                     ///< the host of node rank 0, where the rendezvous is; empty: unknown
  int port = 0;                         ///< 0: the default port
  int node_rank = 0;                    ///< of this host
  std::vector<std::string> hosts = {};  ///< by node rank; empty: unknown, or each rank has a launcher

  std::string nodes_by = {};      ///< the variable that gave the number of nodes; empty: the manager as a whole
  std::string node_rank_by = {};  ///< the variable that gave the rank
  std::string host_by = {};       ///< the variable that gave the host
  std::string port_by = {};       ///< the variable that gave the port
  bool knows_nodes = true;  ///< the allocation has all nodes of the job; false: only the user knows how many there are
  bool replaces_nodes = false;  ///< the manager restarts a node that ended
  bool shares_screen = false;   ///< the manager shows in one place what all launchers print
  int tasks = 1;                ///< launchers of the job, where the manager counts launchers and not nodes
  int tasks_here = 1;           ///< launchers on this host; without a `task` each would start all workers of the host
  std::string starter = {};     ///< how to ask for tasks on each node, '{}' for their number: 'mpiexec -ppn {}'; empty:
                                ///< srun's way
  bool divides_gpus = false;    ///< the manager may show each of several launchers on a node its own GPUs
  bool is_up = false;           ///< something listens on host and port before any launcher is told of them
  int listener = -1;  ///< on node rank 0: a socket that listens on host and port already; -1: no such socket. Owned by
                      ///< the process.
  std::optional<TaskPlace> task =
      {};  ///< set for a launcher that starts one rank; empty: it starts all ranks of its node

  bool operator==(const JobPlace&) const = default;
};

/// The nodes that a run may use, and the source that named them.
struct Allocation {
  std::vector<AllocatedNode> nodes;  ///< never empty; this host first, then the others in rank order
  std::string source;                ///< 'this host', 'Slurm step 12.0'
  std::string reason;                ///< the variables that made lrun choose this source
  std::optional<JobPlace> job = {};  ///< empty: the user names the rendezvous
  std::string run_id = {};           ///< that a head has made; empty: the launchers make it
  int nodes_to_start = 0;            ///< nodes of a batch job where srun has to start the launchers; 0: no such job
  bool is_outside = false;           ///< this host is none of `nodes_to_start`
  int tasks_of_step = 0;             ///< tasks of the Slurm step, each a launcher like this one; 0: not in a step
  int gpus_given = 0;                ///< GPUs that the manager gave to its job on this node; 0: unknown
  int cpus_given = 0;                ///< CPUs that it gave; 0: unknown
  std::vector<std::string> names_of_host = {};  ///< names of the nodes that are this host, where several are
  std::vector<std::string> listed_hosts =
      {};  ///< hosts of a job whose manager starts no program on them; empty: no such job

  bool operator==(const Allocation&) const = default;
};

}  // namespace lrun::launcher
