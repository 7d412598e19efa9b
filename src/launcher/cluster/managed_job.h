#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "cluster/allocation.h"

namespace lrun::launcher {

/// The hint where a manager's words do not suffice.
inline constexpr const char* kByHand = "give '--num-nodes', '--node-rank' and '--rdzv-endpoint'";

/// A value, and the variable or file that reported it. Unknown without such a source.
template <class T>
struct Reported {
  T value{};
  std::string by;

  [[nodiscard]] bool known() const { return !by.empty(); }
  bool operator==(const Reported&) const = default;
};

/// The job as a manager other than Slurm describes it to one of the launchers that it started.
struct ManagedJob {
  std::string manager;   ///< 'Open MPI', 'SageMaker'
  std::string run_name;  ///< equal on all nodes, unique to the job; empty: the manager gives no name
  Reported<int> nodes;
  Reported<int> node_rank;
  Reported<std::string> host;      ///< of node rank 0
  Reported<int> port;              ///< for the rendezvous
  std::vector<std::string> hosts;  ///< in rank order; empty: unknown
  int tasks = 1;                   ///< launchers that it started, where it counts launchers and not nodes
  int tasks_here = 1;              ///< launchers on this host
  std::string starter = {};        ///< how to ask it for tasks on each node, '{}' for their number: 'mpiexec -ppn {}'
  std::optional<TaskPlace> task = {};  ///< of a launcher of one rank, where there are several on each node
  bool divides_gpus = false;           ///< it may show each of several launchers on a node its own GPUs
  bool replaces_nodes = false;         ///< it restarts a node that ended
  bool derives_host = false;           ///< `host` was derived from names; MASTER_ADDR, if set, overrides it

  /// A job of one launcher needs no rendezvous, whatever hosts other variables list.
  [[nodiscard]] bool is_of_one() const { return nodes.known() && nodes.value == 1 && !task; }
  /// Each launcher has one rank, and all are on this host.
  [[nodiscard]] bool has_all_ranks_here() const { return task && task->nodes == 1; }
  /// True of mpirun and the like, which may run inside the job of any other manager and count their own tasks.
  [[nodiscard]] bool numbers_tasks() const { return !starter.empty(); }
  bool operator==(const ManagedJob&) const = default;
};

/// All that the readers of managers look at, so that tests can provide it.
struct ManagerView {
  const Environment& environment;
  std::string this_host;                                     ///< its name, as uname prints it
  std::function<std::string(const std::string& path)> read;  ///< the text of a file; empty when it cannot be read
  std::optional<int> pmi_proxy = {};                         ///< as pmi_proxy() tells it of PMI_FD
};

/// The job that this launcher is a part of, from the variables of Open MPI, MPICH, Intel MPI, jsrun, Flux, Kubernetes
/// (PyTorchJob, Volcano, TPU pods, indexed Job), SageMaker, Azure ML, Vertex AI or AWS Batch. Where the manager does
/// not report the host of node rank 0, MASTER_ADDR and MASTER_PORT give it. \return empty when no manager is found, and
/// in a worker of another launcher. \throws UserError  variables cannot be read, or contradict each other.
std::optional<ManagedJob> find_managed_job(const ManagerView& view);

/// \name For readers
/// @{

/// A variable's whole number, 0 or more: a rank. \return unknown when the variable is not set or empty.
/// \throws UserError  it is not such a number.
Reported<int> reported_index(const Environment& environment, const std::string& name);

/// The same for a number of nodes or tasks, from 1 to the 65,536 that a run can have.
Reported<int> reported_count(const Environment& environment, const std::string& name);

/// The text of a variable. \return unknown when the variable is not set or empty.
Reported<std::string> reported_text(const Environment& environment, const std::string& name);

/// \throws UserError  both are known and differ. \param what  the name of the value: 'node rank'
void require_agreement(std::string_view what, const Reported<int>& one, const Reported<int>& other);

/// A port that is equal for equal names, below the ports that the kernel gives to connections.
int port_for(std::string_view name);
/// @}

}  // namespace lrun::launcher
