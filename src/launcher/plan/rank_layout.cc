#include "plan/rank_layout.h"

#include "base/user_error.h"

namespace lrun::launcher {
namespace {

std::vector<WorkerPlan> workers_of(const NodePlan& node, bool one_per_device) {
  std::vector<WorkerPlan> workers;
  if (!one_per_device) {
    workers.push_back({node.base_rank, 0, node.node_rank, node.devices, std::nullopt});
    return workers;
  }
  workers.reserve(node.devices.size());
  for (const DeviceId& device : node.devices) {
    const int local_rank = static_cast<int>(workers.size());
    workers.push_back({node.base_rank + local_rank, local_rank, node.node_rank, {device}, std::nullopt});
  }
  return workers;
}

/// A program that starts its ranks knows only the devices of its own node.
void require_equal_nodes(Strategy strategy, const std::vector<NodeDevices>& nodes) {
  for (const NodeDevices& node : nodes) {
    if (node.devices.size() == nodes.front().devices.size()) continue;
    throw UserError("strategy '" + text_of(strategy) + "' needs the same number of devices on every node, but '" +
                        nodes.front().name + "' has " + std::to_string(nodes.front().devices.size()) + " and '" +
                        node.name + "' has " + std::to_string(node.devices.size()),
                    "use '--strategy ddp', which takes nodes as they are");
  }
}

}  // namespace

std::vector<NodePlan> layout_ranks(Strategy strategy, const std::vector<NodeDevices>& nodes) {
  const StrategyFacts& facts = facts_of(strategy);
  if (facts.processes == StrategyFacts::Processes::kOneInAll && nodes.size() > 1) {
    throw UserError("strategy 'dp' is one process and cannot use " + std::to_string(nodes.size()) + " nodes",
                    "use '--strategy ddp2' for dp inside every node, or '--strategy ddp'");
  }
  if (facts.starts_ranks_from_code) require_equal_nodes(strategy, nodes);
  const bool one_per_device = facts.processes == StrategyFacts::Processes::kOnePerDevice;
  std::vector<NodePlan> layout;
  layout.reserve(nodes.size());
  int base_rank = 0;
  for (const NodeDevices& node : nodes) {
    NodePlan& planned = layout.emplace_back();
    planned.node_rank = static_cast<int>(layout.size()) - 1;
    planned.name = node.name;
    planned.base_rank = base_rank;
    planned.devices = node.devices;
    planned.workers = workers_of(planned, one_per_device);
    base_rank += static_cast<int>(planned.workers.size());
  }
  return layout;
}

}  // namespace lrun::launcher
