// In: the records of the nodes of a round, or JSON from the leader. Out: their ranks, JSON, and the plan of this node
// with its place. Called by the Coordinator, by LauncherMessage and by the run of this node.
#include "rendezvous/membership.h"

#include <arpa/inet.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/json.h"
#include "base/numeric_address.h"

namespace lrun::launcher {
namespace {

using Json = nlohmann::json;

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

std::map<int, int> counts_from(const Json& json) {
  std::map<int, int> counts;
  for (const Json& pair : json) counts[json_integer(pair.at(0))] = json_integer(pair.at(1));
  return counts;
}

/// There are so many nodes, each with workers. \return of how many workers; empty: it is not so.
std::optional<long> workers_in(const std::map<int, int>& nodes_by_workers, int nodes) {
  long workers = 0;
  long counted = 0;
  for (const auto& [each, count] : nodes_by_workers) {
    if (each < 1 || each > kMostWorkersOfANode || count < 1 || count > kMostNodesOfAJob) return std::nullopt;
    counted += count;
    workers += static_cast<long>(each) * count;
  }
  return counted == nodes ? std::optional(workers) : std::nullopt;
}

bool counts_fit(const Membership& membership) {
  const Member& self = membership.self;
  const bool all = workers_in(membership.nodes_by_workers, membership.num_nodes) == membership.world_size &&
                   workers_in(self.earlier_by_workers, self.node_rank) == self.base_rank;
  std::map<int, int> up_to_self = self.earlier_by_workers;
  ++up_to_self[self.workers];
  return all && std::all_of(up_to_self.begin(), up_to_self.end(), [&](const auto& entry) {
           const auto found = membership.nodes_by_workers.find(entry.first);
           return found != membership.nodes_by_workers.end() && found->second >= entry.second;
         });
}

Member member_from(const Json& json) {
  Member member;
  member.node_rank = json_integer(json.at("node_rank"));
  member.name = json.at("name").get<std::string>();
  member.base_rank = json_integer(json.at("base_rank"));
  member.workers = json_integer(json.at("workers"));
  member.address = json.at("address").get<std::string>();
  member.role = json.at("role").get<std::string>();
  member.base_role_rank = json_integer(json.at("base_role_rank"));
  member.role_world_size = json_integer(json.at("role_world_size"));
  member.shares_name = json.at("shares_name").get<bool>();
  member.earlier_by_workers = counts_from(json.at("earlier_by_workers"));
  return member;
}

Json json_of(const Successor& successor) {
  return {{"node_rank", successor.node_rank},
          {"name", successor.name},
          {"address", successor.address},
          {"port", successor.standby_port}};
}

Successor successor_from(const Json& json) {
  return {json_integer(json.at("node_rank")), json.at("name").get<std::string>(), json.at("address").get<std::string>(),
          json_integer(json.at("port"))};
}

Json json_of(const std::vector<Successor>& successors) {
  Json json = Json::array();
  for (const Successor& successor : successors) json.push_back(json_of(successor));
  return json;
}

std::vector<Successor> successors_from(const Json& json) {
  std::vector<Successor> successors;
  for (const Json& successor : json) successors.push_back(successor_from(successor));
  return successors;
}

std::size_t named_of(int nodes) { return std::min(static_cast<std::size_t>(nodes), Membership::kMostNamedNodes); }

/// There may be such a node among so many: every other one has a worker at least, and ranks have no gaps.
bool has_room_for(const Membership& membership) {
  const Member& self = membership.self;
  const int nodes_behind = membership.num_nodes - 1 - self.node_rank;
  const int workers_behind = membership.world_size - self.base_rank - self.workers;
  const bool first_is_first = (self.node_rank == 0) == (self.base_rank == 0);
  const bool last_is_last = (nodes_behind == 0) == (workers_behind == 0);
  return self.base_rank >= self.node_rank && workers_behind >= nodes_behind && first_is_first && last_is_last &&
         is_within(self.base_role_rank, 0, std::min(self.base_rank, self.role_world_size - self.workers));
}

/// In the order of their ranks.
bool is_line(const std::vector<Successor>& successors, int nodes) {
  int rank = -1;
  for (const Successor& successor : successors) {
    if (!is_within(successor.node_rank, rank + 1, nodes - 1)) return false;
    if (!is_within(successor.standby_port, 1, kMostPort)) return false;
    rank = successor.node_rank;
  }
  return successors.size() <= Membership::kMostSuccessors;
}

bool has_line(const Membership& membership) {
  return is_line(membership.successors, membership.num_nodes) &&
         is_within(membership.leader.value_or(0), 0, membership.num_nodes - 1);
}

bool is_consistent(const Membership& membership) {
  const Member& self = membership.self;
  return is_within(membership.num_nodes, 1, kMostNodesOfAJob) &&
         is_within(membership.world_size, 1, kMostWorkersOfAJob) && membership.round >= 0 && membership.attempt >= 0 &&
         is_within(membership.master_port, 1, kMostPort) &&
         membership.first_names.size() == named_of(membership.num_nodes) &&
         is_within(self.node_rank, 0, membership.num_nodes - 1) &&
         is_within(self.base_rank, 0, membership.world_size - 1) && is_within(self.workers, 1, kMostWorkersOfANode) &&
         is_within(self.role_world_size, self.workers, membership.world_size) && has_room_for(membership) &&
         counts_fit(membership) && has_line(membership);
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

Membership sole_membership(const LaunchPlan& plan, int master_port) {
  const NodePlan& node = plan.nodes.front();
  Membership membership;
  membership.world_size = plan.world_size;
  membership.master_addr = plan.master_addr;
  membership.master_port = master_port;
  const int workers = static_cast<int>(node.workers.size());
  membership.nodes_by_workers = {{workers, 1}};
  membership.first_names = {node.name};
  membership.self = {.node_rank = node.node_rank,
                     .name = node.name,
                     .base_rank = node.base_rank,
                     .workers = workers,
                     .role_world_size = workers};
  return membership;
}

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

RankAssignment assign_ranks(const std::vector<JoinRecord>& nodes) {
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
    if (node.standby_port != 0 &&
        common.successors.size() <= Membership::kMostSuccessors) {  // one of them may be the leader
      common.successors.push_back({members.back().node_rank, node.node, members.back().address, node.standby_port});
    }
    if (members.size() > 1) continue;
    common.master_addr = members.front().address;
    common.master_port = node.store_port;
    common.run_name = node.run_name.empty() ? node.run_id : node.run_name;
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
  if (!membership.run_name.empty()) placed.run_name = membership.run_name;
  placed.other_roles_before = self.base_rank - self.base_role_rank;
  placed.role_world_size = self.role_world_size;
}

std::string to_json(const Membership& membership) {
  Json json = {{"round", membership.round},
               {"attempt", membership.attempt},
               {"history", membership.history},
               {"num_nodes", membership.num_nodes},
               {"world_size", membership.world_size},
               {"run_name", membership.run_name},
               {"master_addr", membership.master_addr},
               {"master_port", membership.master_port},
               {"nodes_by_workers", membership.nodes_by_workers},
               {"first_names", membership.first_names}};
  if (!membership.leader) return json_text(json);  // with an etcd no member succeeds the leader
  json["holder"] = *membership.leader;
  json["holder_name"] = membership.leader_name;
  json["successors"] = json_of(membership.successors);
  return json_text(json);
}

std::string to_json(const std::vector<Successor>& successors) { return json_text(json_of(successors)); }

std::optional<std::vector<Successor>> successors_from_json(std::string_view text) {
  try {
    std::vector<Successor> successors = successors_from(Json::parse(text));
    return is_line(successors, kMostNodesOfAJob) ? std::optional(std::move(successors)) : std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::string to_json(const Member& member) {
  return json_text({{"node_rank", member.node_rank},
                    {"name", member.name},
                    {"base_rank", member.base_rank},
                    {"workers", member.workers},
                    {"address", member.address},
                    {"role", member.role},
                    {"base_role_rank", member.base_role_rank},
                    {"role_world_size", member.role_world_size},
                    {"shares_name", member.shares_name},
                    {"earlier_by_workers", member.earlier_by_workers}});
}

std::optional<Membership> membership_from_json(std::string_view common, std::string_view self) {
  try {
    const Json json = Json::parse(common);
    Membership membership;
    membership.round = json_integer(json.at("round"));
    membership.attempt = json_integer(json.at("attempt"));
    membership.history = json.at("history").get<std::string>();
    membership.num_nodes = json_integer(json.at("num_nodes"));
    membership.world_size = json_integer(json.at("world_size"));
    membership.run_name = json.at("run_name").get<std::string>();
    membership.master_addr = json.at("master_addr").get<std::string>();
    membership.master_port = json_integer(json.at("master_port"));
    membership.nodes_by_workers = counts_from(json.at("nodes_by_workers"));
    membership.first_names = json.at("first_names").get<std::vector<std::string>>();
    if (json.contains("holder")) {
      membership.leader = json_integer(json.at("holder"));
      membership.leader_name = json.at("holder_name").get<std::string>();
      membership.successors = successors_from(json.at("successors"));
    }
    membership.self = member_from(Json::parse(self));
    return is_consistent(membership) ? std::optional(std::move(membership)) : std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace lrun::launcher
