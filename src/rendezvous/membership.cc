#include "rendezvous/membership.h"

namespace lrun {

Membership sole_membership(const LaunchPlan& plan, int master_port) {
  const NodePlan& node = plan.nodes.front();
  Membership membership;
  membership.world_size = plan.world_size;
  membership.master_addr = plan.master_addr;
  membership.master_port = master_port;
  membership.members = {{node.node_rank, node.name, node.base_rank, static_cast<int>(node.workers.size())}};
  return membership;
}

}  // namespace lrun
