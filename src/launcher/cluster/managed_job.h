#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"

namespace lrun::launcher {

/// A value, and the variable or file that tells it; without one nobody does.
template <class T>
struct Told {
  T value{};
  std::string by;

  [[nodiscard]] bool known() const { return !by.empty(); }
  bool operator==(const Told&) const = default;
};

/// What a manager other than Slurm tells one of the launchers that it started.
struct ManagedJob {
  std::string manager;   ///< 'Open MPI', 'SageMaker'
  std::string run_name;  ///< the same on all nodes, no other job's; empty: the manager gives none
  Told<int> nodes;
  Told<int> node_rank;
  Told<std::string> host;          ///< of node rank 0
  Told<int> port;                  ///< that launchers may meet on
  std::vector<std::string> hosts;  ///< in rank order; empty: not told
  int tasks = 1;                   ///< launchers that it started, where it counts these and not nodes
  int tasks_here = 1;              ///< those of them on this host, where each would start all its workers
  std::string one_a_node = {};     ///< how a user asks it for one task a node: 'mpirun --map-by ppr:1:node'
  bool replaces_nodes = false;     ///< it starts a node again that ended
  bool derives_host = false;       ///< `host` follows from names; MASTER_ADDR, which somebody wrote, is better

  /// One launcher: nobody to meet, whatever else is on this machine's lists.
  [[nodiscard]] bool is_of_one() const { return nodes.known() && nodes.value == 1; }
  /// mpirun or the like, which may run inside of any other manager's job and counts its own tasks.
  [[nodiscard]] bool numbers_tasks() const { return !one_a_node.empty(); }
  bool operator==(const ManagedJob&) const = default;
};

/// What readers of managers look at: nothing else, so that they are functions of it.
struct ManagerView {
  const Environment& environment;
  std::string this_host;                                     ///< its name, as uname gives it
  std::function<std::string(const std::string& path)> read;  ///< a file's text; empty: cannot be read
};

/// The launchers' job as a manager tells it, from the variables of Open MPI, MPICH, Intel MPI, jsrun and Flux; of
/// Kubernetes (PyTorchJob, Volcano, TPU pods, indexed Job), SageMaker, Azure ML, Vertex AI and AWS Batch. Where the
/// manager does not say where node rank 0 is, MASTER_ADDR and MASTER_PORT do. \return empty: none of them, or a worker
/// of another launcher. \throws UserError  variables cannot be read, or do not agree.
std::optional<ManagedJob> find_managed_job(const ManagerView& view);

/// \name For readers
/// @{

/// The whole number of a variable from 0 on: a rank. \return unknown: it is not set, or to nothing.
/// \throws UserError  it is no such number.
Told<int> told_index(const Environment& environment, const std::string& name);

/// The same from 1 to the 65,536 that a run can have: nodes or tasks.
Told<int> told_count(const Environment& environment, const std::string& name);

/// The text of a variable; an empty one tells nothing.
Told<std::string> told_text(const Environment& environment, const std::string& name);

/// \throws UserError  both are known and differ. \param what  they tell: 'node rank'
void require_agreement(std::string_view what, const Told<int>& one, const Told<int>& other);

/// A port that follows from `name`, below those that the kernel gives to connections.
int port_for(std::string_view name);
/// @}

}  // namespace lrun::launcher
