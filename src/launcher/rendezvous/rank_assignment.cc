// In: the records of the nodes of a round. Out: the numbers of nodes and ranks, and the plan of this node with its own.
// The Coordinator calls assign_ranks(), and the run of a node place().
#include "rendezvous/rank_assignment.h"

#include <arpa/inet.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/numeric_address.h"

namespace lrun::launcher {
namespace {

/// IPv4 before IPv6, each in the order of its numbers.
std::string address_key(const std::string& address) {
  // Bytes in the order of the network compare as the numbers do.
  unsigned char bytes[sizeof(in6_addr)] = {};
  if (::inet_pton(AF_INET, address.c_str(), bytes) == 1) return "4" + std::string(bytes, bytes + sizeof(in_addr));
  if (::inet_pton(AF_INET6, address.c_str(), bytes) == 1) return "6" + std::string(bytes, bytes + sizeof bytes);
  return "9" + address;
}

/// Where the others reach a node that knows itself as 127.0.0.1; empty: all are on one machine.
std::string address_of_leader(const std::vector<JoinRecord>& nodes) {
  const auto outside = std::find_if(nodes.begin(), nodes.end(), [](const JoinRecord& other) {
    return !is_loopback_address(other.address) && !is_loopback_address(other.leader_address);
  });
  return outside == nodes.end() ? std::string() : outside->leader_address;
}

const std::string& reachable_address(const JoinRecord& node, const std::string& leader) {
  return leader.empty() || !is_loopback_address(node.address) ? node.address : leader;
}

void count_roles(std::vector<Member>& members) {
  std::map<std::string, int> sizes;
  for (Member& member : members) {
    member.base_role_rank = sizes[member.role];
    sizes[member.role] += member.workers;
  }
  for (Member& member : members) member.role_world_size = sizes[member.role];
}

/// Also which names are there more than once.
void count_nodes(std::vector<Member>& members, std::map<int, int>& nodes_by_workers) {
  std::map<std::string, int> names;
  for (Member& member : members) {
    member.earlier_by_workers = nodes_by_workers;
    ++nodes_by_workers[member.workers];
    ++names[member.name];
  }
  for (Member& member : members) member.shares_name = names[member.name] > 1;
}

void place_node(LaunchPlan& placed, const Membership& membership) {
  const Member& self = membership.self;
  NodePlan& node = placed.nodes.front();
  node.node_rank = self.node_rank;
  node.base_rank = self.base_rank;
  for (WorkerPlan& worker : node.workers) {
    worker.rank = self.base_rank + worker.local_rank;
    worker.node_rank = self.node_rank;
  }
  placed.num_nodes = membership.num_nodes;
}

}  // namespace

std::vector<std::size_t> order_nodes(const std::vector<JoinRecord>& nodes) {
  const std::string leader = address_of_leader(nodes);
  std::vector<std::string> keys;
  std::vector<std::size_t> placed;
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    keys.push_back(address_key(reachable_address(nodes[i], leader)));
    (nodes[i].node_rank ? placed : free).push_back(i);
  }
  const auto by_address = [&](std::size_t i) { return std::tie(keys[i], nodes[i].node, nodes[i].token); };
  std::sort(free.begin(), free.end(), [&](auto left, auto right) { return by_address(left) < by_address(right); });
  std::sort(placed.begin(), placed.end(), [&](auto left, auto right) {
    return std::pair(*nodes[left].node_rank, by_address(left)) < std::pair(*nodes[right].node_rank, by_address(right));
  });
  std::vector<std::size_t> order;
  auto next_placed = placed.begin();
  auto next_free = free.begin();
  // Nodes that asked for a rank get it as soon as it comes up; nodes without one fill the ranks between.
  while (order.size() < nodes.size()) {
    const bool due = next_placed != placed.end() && *nodes[*next_placed].node_rank <= static_cast<int>(order.size());
    order.push_back(due || next_free == free.end() ? *next_placed++ : *next_free++);
  }
  return order;
}

RankAssignment assign_ranks(const std::vector<JoinRecord>& nodes, const std::string& run_id) {
  RankAssignment assignment;
  Membership& common = assignment.common;
  std::vector<Member>& members = assignment.members;
  common.num_nodes = static_cast<int>(nodes.size());
  common.world_size = 0;
  assignment.order = order_nodes(nodes);
  const std::string leader = address_of_leader(nodes);
  for (const std::size_t index : assignment.order) {
    const JoinRecord& node = nodes[index];
    members.push_back({.node_rank = static_cast<int>(members.size()),
                       .name = node.node,
                       .base_rank = common.world_size,
                       .workers = node.workers,
                       .address = reachable_address(node, leader),
                       .role = node.role});
    common.world_size += node.workers;
    if (members.size() <= Membership::kMostNamedNodes) common.first_names.push_back(node.node);
    // One more than is kept, since one of them may be the leader.
    if (node.standby_port != 0 && common.successors.size() <= Membership::kMostSuccessors) {
      common.successors.push_back({members.back().node_rank, node.node, members.back().address, node.standby_port});
    }
    if (members.size() > 1) continue;
    common.master_addr = members.front().address;
    common.master_port = node.store_port;
    common.run_id = run_id.empty() ? node.run_id : run_id;
    common.run_name = node.run_name.empty() ? common.run_id : node.run_name;
  }
  count_roles(members);
  count_nodes(members, common.nodes_by_workers);
  return assignment;
}

LaunchPlan place(const LaunchPlan& plan, const Membership& membership) {
  LaunchPlan placed = plan;
  placed.nodes.resize(1);
  place_anew(placed, membership);
  return placed;
}

void place_anew(LaunchPlan& placed, const Membership& membership) {
  const Member& self = membership.self;
  if (!placed.is_of_one_rank) place_node(placed, membership);  // else the manager has placed it for good
  placed.world_size = membership.world_size;
  placed.master_addr = membership.master_addr;
  placed.master_port = membership.master_port;
  if (!membership.run_id.empty()) placed.run_id = membership.run_id;
  if (!membership.run_name.empty()) placed.run_name = membership.run_name;
  placed.other_roles_before = self.base_rank - self.base_role_rank;
  placed.role_world_size = self.role_world_size;
}

}  // namespace lrun::launcher
