#pragma once

#include <string>
#include <vector>

#include "cluster/allocation.h"
#include "plan/device_choice.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// The nodes of a run and the devices that it uses on each. Both lists have the same order.
struct RunNodes {
  std::vector<AllocatedNode> nodes;  ///< not empty; this host is the first where it is to run
  std::vector<DeviceChoice> choices;
  std::string description;  ///< where the nodes come from, for --dry-run

  /// Of the node that has most.
  [[nodiscard]] int most_devices() const;
};

/// Takes as many nodes of the allocation as were asked for, and plans missing ones like the first.
/// \throws UserError  an impossible number of nodes, devices that a node does not have, or different kinds of devices
RunNodes choose_nodes(const LaunchRequest& request, const Allocation& allocation);

}  // namespace lrun::launcher
