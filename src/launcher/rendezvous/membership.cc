// In: the membership of a node, or JSON from the leader. Out: JSON, or the membership, which is checked. Called by
// LauncherMessage, and for a launcher that is alone by the run of this node.
#include "rendezvous/membership.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include "base/json.h"
#include "base/numeric_address.h"
#include "plan/run_id.h"
#include "rendezvous/join_record.h"

namespace lrun::launcher {

bool is_sound(const FileOwner& owner) {
  constexpr std::size_t kMostTokenBytes = 1024;
  return !owner.token.empty() && owner.token.size() <= kMostTokenBytes &&
         is_within(owner.node_rank, 0, kMostNodesOfAJob - 1);
}

namespace {

using Json = nlohmann::json;

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

std::vector<LostFiles> lost_files_from(const Json& json) {
  std::vector<LostFiles> all;
  for (const Json& lost : json) {
    all.push_back({{lost.at("token").get<std::string>(), json_integer(lost.at("node_rank"))},
                   lost.at("address").get<std::string>(),
                   json_integer(lost.at("port")),
                   lost.at("key").get<std::string>()});
  }
  return all;
}

std::vector<FileOwner> owners_from(const Json& json) {
  std::vector<FileOwner> owners;
  for (const Json& pair : json) owners.push_back({pair.at(0).get<std::string>(), json_integer(pair.at(1))});
  return owners;
}

Json json_of(const std::vector<FileOwner>& owners) {
  Json json = Json::array();
  for (const FileOwner& owner : owners) json.push_back({owner.token, owner.node_rank});
  return json;
}

bool are_sound(const std::vector<FileOwner>& owners) {
  return owners.size() <= Member::kMostInherited && std::all_of(owners.begin(), owners.end(), is_sound);
}

bool is_endpoint(const std::string& address, int port) {
  return is_numeric_address(address) && is_within(port, 1, kMostPort);
}

bool has_copies(const Member& self) {
  const bool is_alone = self.neighbour.empty() && self.neighbour_port == 0 && self.neighbour_key.empty();
  return (is_alone || is_endpoint(self.neighbour, self.neighbour_port)) && are_sound(self.keeps_for) &&
         self.inherits.size() <= Member::kMostInherited &&
         std::all_of(self.inherits.begin(), self.inherits.end(), [](const LostFiles& lost) {
           return is_sound(lost.owner) && is_endpoint(lost.address, lost.port);
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
  member.neighbour = json.value("neighbour", std::string());
  if (json.contains("neighbour_port")) member.neighbour_port = json_integer(json.at("neighbour_port"));
  member.neighbour_key = json.value("neighbour_key", std::string());
  if (json.contains("keeps_for")) member.keeps_for = owners_from(json.at("keeps_for"));
  if (json.contains("inherits")) member.inherits = lost_files_from(json.at("inherits"));
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
  return is_within(membership.num_nodes, 1, kMostNodesOfAJob) && is_run_id(membership.run_id) &&
         is_within(membership.world_size, 1, kMostWorkersOfAJob) && membership.round >= 0 && membership.attempt >= 0 &&
         is_within(membership.master_port, 1, kMostPort) &&
         membership.first_names.size() == named_of(membership.num_nodes) &&
         is_within(self.node_rank, 0, membership.num_nodes - 1) &&
         is_within(self.base_rank, 0, membership.world_size - 1) && is_within(self.workers, 1, kMostWorkersOfANode) &&
         is_within(self.role_world_size, self.workers, membership.world_size) && has_room_for(membership) &&
         counts_fit(membership) && has_line(membership) && has_copies(self);
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

std::string to_json(const Membership& membership) {
  Json json = {{"round", membership.round},
               {"attempt", membership.attempt},
               {"history", membership.history},
               {"num_nodes", membership.num_nodes},
               {"world_size", membership.world_size},
               {"run_id", membership.run_id},
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
  Json json = {{"node_rank", member.node_rank},
               {"name", member.name},
               {"base_rank", member.base_rank},
               {"workers", member.workers},
               {"address", member.address},
               {"role", member.role},
               {"base_role_rank", member.base_role_rank},
               {"role_world_size", member.role_world_size},
               {"shares_name", member.shares_name},
               {"earlier_by_workers", member.earlier_by_workers}};
  if (!member.neighbour.empty()) {
    json["neighbour"] = member.neighbour;
    json["neighbour_port"] = member.neighbour_port;
    json["neighbour_key"] = member.neighbour_key;
  }
  if (!member.keeps_for.empty()) json["keeps_for"] = json_of(member.keeps_for);
  for (const LostFiles& lost : member.inherits) {
    json["inherits"].push_back({{"token", lost.owner.token},
                                {"node_rank", lost.owner.node_rank},
                                {"address", lost.address},
                                {"port", lost.port},
                                {"key", lost.key}});
  }
  return json_text(json);
}

std::optional<Member> member_from_json(std::string_view text) {
  try {
    Member member = member_from(Json::parse(text));
    return has_copies(member) ? std::optional(std::move(member)) : std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::string to_json(const std::vector<FileOwner>& owners) { return json_text(json_of(owners)); }

std::optional<std::vector<FileOwner>> file_owners_from_json(std::string_view text) {
  try {
    std::vector<FileOwner> owners = owners_from(Json::parse(text));
    return are_sound(owners) ? std::optional(std::move(owners)) : std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
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
    membership.run_id = json.at("run_id").get<std::string>();
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
