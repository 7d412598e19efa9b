#include "rendezvous/membership.h"

#include <arpa/inet.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "base/json_integer.h"

namespace lrun {
namespace {

using Json = nlohmann::json;

/// IPv4 before IPv6, each in the order of its numbers.
std::string address_key(const std::string& address) {
  unsigned char bytes[sizeof(in6_addr)] = {};
  if (::inet_pton(AF_INET, address.c_str(), bytes) == 1) return "4" + std::string(bytes, bytes + sizeof(in_addr));
  if (::inet_pton(AF_INET6, address.c_str(), bytes) == 1) return "6" + std::string(bytes, bytes + sizeof bytes);
  return "9" + address;
}

/// Where the others reach a node that says 127.0.0.1 about itself.
std::string reachable_address(const JoinRecord& node, const std::vector<JoinRecord>& nodes) {
  if (!is_loopback_address(node.address)) return node.address;
  const auto outside = std::find_if(nodes.begin(), nodes.end(), [](const JoinRecord& other) {
    return !is_loopback_address(other.address) && !is_loopback_address(other.meeting_address);
  });
  return outside == nodes.end() ? node.address : outside->meeting_address;
}

void count_roles(std::vector<Member>& members) {
  std::map<std::string, int> sizes;
  for (Member& member : members) {
    member.base_role_rank = sizes[member.role];
    sizes[member.role] += member.workers;
  }
  for (Member& member : members) member.role_world_size = sizes[member.role];
}

Json json_of(const Member& member) {
  return {{"node_rank", member.node_rank},
          {"name", member.name},
          {"base_rank", member.base_rank},
          {"workers", member.workers},
          {"address", member.address},
          {"role", member.role},
          {"base_role_rank", member.base_role_rank},
          {"role_world_size", member.role_world_size}};
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
  return member;
}

/// Ranks without gaps, in the order of the nodes.
bool is_consistent(const Membership& membership) {
  constexpr int kMostPort = 65'535;
  if (membership.members.empty() || membership.members.size() > std::size_t{kMostNodesOfAJob}) return false;
  long next_rank = 0;
  int node_rank = 0;
  for (const Member& member : membership.members) {
    if (member.workers < 1 || member.workers > kMostWorkersOfANode) return false;
    if (member.node_rank != node_rank++ || member.base_rank != next_rank) return false;
    if (member.role_world_size < member.workers || member.base_role_rank < 0) return false;
    if (member.base_role_rank > member.role_world_size - member.workers) return false;
    next_rank += member.workers;
  }
  return next_rank == membership.world_size && membership.node_rank >= 0 && membership.node_rank < node_rank &&
         membership.round >= 0 && membership.attempt >= 0 && membership.master_port >= 1 &&
         membership.master_port <= kMostPort;
}

}  // namespace

Membership sole_membership(const LaunchPlan& plan, int master_port) {
  const NodePlan& node = plan.nodes.front();
  Membership membership;
  membership.world_size = plan.world_size;
  membership.master_addr = plan.master_addr;
  membership.master_port = master_port;
  const int workers = static_cast<int>(node.workers.size());
  membership.members = {
      {.node_rank = node.node_rank, .name = node.name, .base_rank = node.base_rank, .workers = workers}};
  count_roles(membership.members);
  return membership;
}

std::vector<std::size_t> order_nodes(const std::vector<JoinRecord>& nodes) {
  std::vector<std::size_t> placed;
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < nodes.size(); ++i) (nodes[i].node_rank ? placed : free).push_back(i);
  const auto by_address = [&](std::size_t i) {
    return std::tuple(address_key(reachable_address(nodes[i], nodes)), nodes[i].node, nodes[i].token);
  };
  std::sort(free.begin(), free.end(), [&](auto left, auto right) { return by_address(left) < by_address(right); });
  std::sort(placed.begin(), placed.end(), [&](auto left, auto right) {
    return std::tuple(*nodes[left].node_rank, by_address(left)) <
           std::tuple(*nodes[right].node_rank, by_address(right));
  });
  std::vector<std::size_t> order;
  auto next_placed = placed.begin();
  auto next_free = free.begin();
  while (order.size() < nodes.size()) {
    const bool due = next_placed != placed.end() && *nodes[*next_placed].node_rank <= static_cast<int>(order.size());
    order.push_back(due || next_free == free.end() ? *next_placed++ : *next_free++);
  }
  return order;
}

Membership assign_ranks(const std::vector<JoinRecord>& nodes) {
  Membership membership;
  membership.world_size = 0;
  for (const std::size_t index : order_nodes(nodes)) {
    const JoinRecord& node = nodes[index];
    membership.members.push_back({.node_rank = static_cast<int>(membership.members.size()),
                                  .name = node.node,
                                  .base_rank = membership.world_size,
                                  .workers = node.workers,
                                  .address = reachable_address(node, nodes),
                                  .role = node.role});
    membership.world_size += node.workers;
    if (membership.members.size() > 1) continue;
    membership.master_addr = membership.members.front().address;
    membership.master_port = node.store_port;
    membership.run_name = node.run_name.empty() ? node.run_id : node.run_name;
  }
  count_roles(membership.members);
  return membership;
}

LaunchPlan place(const LaunchPlan& plan, const Membership& membership) {
  LaunchPlan placed = plan;
  placed.nodes.resize(1);
  place_anew(placed, membership);
  return placed;
}

void place_anew(LaunchPlan& placed, const Membership& membership) {
  const Member& self = membership.self();
  NodePlan& node = placed.nodes.front();
  node.node_rank = self.node_rank;
  node.base_rank = self.base_rank;
  for (WorkerPlan& worker : node.workers) {
    worker.rank = self.base_rank + worker.local_rank;
    worker.node_rank = self.node_rank;
  }
  placed.world_size = membership.world_size;
  placed.num_nodes = static_cast<int>(membership.members.size());
  placed.master_addr = membership.master_addr;
  placed.master_port = membership.master_port;
  if (!membership.run_name.empty()) placed.run_name = membership.run_name;
  placed.other_roles_before = self.base_rank - self.base_role_rank;
  placed.role_world_size = self.role_world_size;
}

std::string to_json(const Membership& membership) {
  Json members = Json::array();
  for (const Member& member : membership.members) members.push_back(json_of(member));
  const Json json = {{"round", membership.round},
                     {"attempt", membership.attempt},
                     {"history", membership.history},
                     {"node_rank", membership.node_rank},
                     {"world_size", membership.world_size},
                     {"run_name", membership.run_name},
                     {"master_addr", membership.master_addr},
                     {"master_port", membership.master_port},
                     {"members", std::move(members)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<Membership> membership_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    Membership membership;
    membership.round = json_integer(json.at("round"));
    membership.attempt = json_integer(json.at("attempt"));
    membership.history = json.at("history").get<std::string>();
    membership.node_rank = json_integer(json.at("node_rank"));
    membership.world_size = json_integer(json.at("world_size"));
    membership.run_name = json.at("run_name").get<std::string>();
    membership.master_addr = json.at("master_addr").get<std::string>();
    membership.master_port = json_integer(json.at("master_port"));
    for (const Json& member : json.at("members")) membership.members.push_back(member_from(member));
    return is_consistent(membership) ? std::optional(std::move(membership)) : std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace lrun
