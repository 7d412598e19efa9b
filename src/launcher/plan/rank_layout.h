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

/// Gives ranks to the processes that a strategy starts on nodes × devices: one per device, one per node, or one in all
/// (StrategyFacts). A rank is its node's base plus the local rank. Bases are the running sum of workers, so that nodes
/// may be unequal. \param nodes  not empty \throws UserError  'dp' on more than one node; unequal nodes where the
/// program starts the ranks
std::vector<NodePlan> layout_ranks(Strategy strategy, const std::vector<NodeDevices>& nodes);

}  // namespace lrun::launcher
