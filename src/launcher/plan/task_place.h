#pragma once

#include <cstddef>
#include <string>

#include "base/user_error.h"
#include "cluster/allocation.h"
#include "plan/device_choice.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// An error that all launchers find which one srun or mpirun has started, since it follows from their one command line.
/// The first of them prints it (is_later_task()).
class ErrorOfAllTasks : public UserError {
 public:
  explicit ErrorOfAllTasks(const UserError& error, bool may_be_of_host = false)
      : UserError(error.what(), error.hint()), may_be_of_host_(may_be_of_host) {}

  /// A variable is missing, which the first task may have.
  [[nodiscard]] bool may_be_of_host() const { return may_be_of_host_; }

 private:
  bool may_be_of_host_;
};

/// A line that starts so many launchers on each node, for hints. It names the tasks of all nodes, too: else srun takes
/// the number with which the job was submitted.
std::string srun_line(int nodes, std::size_t tasks_a_node, const std::string& options = {});

/// The same in the words of the job's manager.
/// \param starter  as JobPlace::starter
std::string starter_line(const std::string& starter, int nodes, std::size_t tasks_a_node,
                         const std::string& options = {});

/// The devices of a node on which the manager starts a launcher for each rank: one per rank, in the order of the local
/// ranks. A launcher that sees only a part of the node's GPUs takes the first of them, and assumes the same of the
/// others.
/// \param request     with its `rendezvous.task`
/// \param gpus_given  by the manager on this node; 0: it does not say
/// \throws UserError  as choose_devices(); the request has another number of ranks on a node than there are launchers;
///                    GPUs that the manager gave would be idle; workers are on TPUs
DeviceChoice choose_for_task(const LaunchRequest& request, const AllocatedNode& node, int gpus_given);

/// Puts the size of the run and this node's place into a plan that has only this node, with all its ranks.
/// \throws UserError  the strategy does not start a process for every device
void place_task(const TaskPlace& task, LaunchPlan& plan);

/// Drops all workers of the plan's node but that of `task`. To be called once.
void keep_own_rank(const TaskPlace& task, LaunchPlan& plan);

}  // namespace lrun::launcher
