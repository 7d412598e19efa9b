#pragma once

#include "base/user_error.h"
#include "cluster/allocation.h"
#include "plan/device_choice.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// What all launchers of a step find alike where each starts one rank, since it follows from their one command line.
class ErrorOfAllTasks : public UserError {
 public:
  ErrorOfAllTasks(const UserError& error, const TaskPlace& task)
      : UserError(error.what(), error.hint()), told_by_another_(task.rank != 0) {}

  /// The launcher of rank 0 says it.
  [[nodiscard]] bool told_by_another() const noexcept { return told_by_another_; }

 private:
  bool told_by_another_;
};

/// The devices of a node on which the manager starts a launcher for each rank: one a rank, in the order of the local
/// ranks. A launcher that the manager shows only a part of the node's GPUs has the first of these, and so, as far as it
/// knows, have the others. `request.rendezvous.task` is there. \param gpus_given  by the manager on this node; 0: it
/// does not say \throws UserError  as choose_devices(); the request wants another number of ranks on a node than there
/// are launchers; GPUs that the manager gave would be idle; workers are on TPUs.
DeviceChoice choose_for_task(const LaunchRequest& request, const AllocatedNode& node, int gpus_given);

/// Size and place of a run of which each rank has a launcher, in a plan that has this node alone, with all its ranks.
/// \throws UserError  the strategy does not make a process of every device.
void place_task(const TaskPlace& task, LaunchPlan& plan);

/// Leaves the plan's node only the worker of `task`.
void keep_own_rank(const TaskPlace& task, LaunchPlan& plan);

}  // namespace lrun::launcher
