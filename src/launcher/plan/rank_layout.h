#pragma once

#include <string>
#include <vector>

#include "plan/launch_plan.h"

namespace lrun::launcher {

/// One node before ranks are given out.
struct NodeDevices {
  std::string name;
  std::vector<DeviceId> devices;  ///< never empty

  bool operator==(const NodeDevices&) const = default;
};

/// Gives ranks to nodes × devices: 'ddp' (and 'single') one process a device, 'ddp2' one a node, 'dp' one in all;
/// 'ddp_spawn' and 'ddp_fork' one a node, which starts the node's ranks itself.
/// The rank is the node's base plus the local rank; bases are the running sum of workers, so unequal nodes are fine.
/// `nodes` is not empty.
/// \throws UserError  'dp' on more than one node.
std::vector<NodePlan> layout_ranks(Strategy strategy, const std::vector<NodeDevices>& nodes);

}  // namespace lrun::launcher
