// In: the nodes of a round, and which files of lost nodes they have. Out: each node's neighbour, and the files that it
// gets. Called by the Coordinator when a round begins.
#include "rendezvous/memory_neighbours.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace lrun::launcher {
namespace {

/// The nodes that keep copies, by their hosts, in the order of node ranks.
std::vector<std::vector<std::size_t>> keepers_by_host(const std::vector<NodeWithFiles>& nodes,
                                                      const std::vector<Member>& members) {
  std::vector<std::vector<std::size_t>> hosts;
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].copy_port == 0) continue;
    const auto [place, is_new] = places.emplace(members[i].address, hosts.size());
    if (is_new) hosts.emplace_back();
    hosts[place->second].push_back(i);
  }
  return hosts;
}

void give_neighbours(const std::vector<NodeWithFiles>& nodes, std::vector<Member>& members) {
  const auto hosts = keepers_by_host(nodes, members);
  for (std::size_t host = 0; hosts.size() > 1 && host < hosts.size(); ++host) {
    const std::vector<std::size_t>& next = hosts[(host + 1) % hosts.size()];
    for (std::size_t i = 0; i < hosts[host].size(); ++i) {
      const std::size_t node = hosts[host][i];
      const std::size_t keeper = next[i % next.size()];
      if (members[keeper].keeps_for.size() == Member::kMostInherited) continue;
      members[keeper].keeps_for.push_back({nodes[node].token, members[node].node_rank});
      members[node].neighbour = members[keeper].address;
      members[node].neighbour_port = nodes[keeper].copy_port;
      members[node].neighbour_key = nodes[keeper].copy_key;
    }
  }
}

/// By the node ranks of their owners. Of several copies the one on the first node counts.
std::vector<LostFiles> files_of_lost_nodes(const std::vector<NodeWithFiles>& nodes,
                                           const std::vector<Member>& members) {
  std::set<std::string> known;
  for (const NodeWithFiles& node : nodes) known.insert(node.token);
  std::vector<LostFiles> lost;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const FileOwner& owner : nodes[i].keeps) {
      if (nodes[i].copy_port == 0 || !known.insert(owner.token).second) continue;
      lost.push_back({owner, members[i].address, nodes[i].copy_port, nodes[i].copy_key});
    }
  }
  std::stable_sort(lost.begin(), lost.end(), [](const LostFiles& left, const LostFiles& right) {
    return left.owner.node_rank < right.owner.node_rank;
  });
  return lost;
}

}  // namespace

void assign_neighbours(const std::vector<NodeWithFiles>& nodes, std::vector<Member>& members) {
  give_neighbours(nodes, members);
  const auto give = [&](std::size_t node, const LostFiles& lost) {
    const bool has_room = members[node].inherits.size() < Member::kMostInherited;
    if (nodes[node].copy_port != 0 && has_room) members[node].inherits.push_back(lost);
  };
  std::vector<LostFiles> left;  // of owners whose rank no newcomer has
  std::set<std::size_t> replacing;
  for (LostFiles& lost : files_of_lost_nodes(nodes, members)) {
    const auto rank = static_cast<std::size_t>(lost.owner.node_rank);
    const bool is_replaced = rank < nodes.size() && nodes[rank].is_new && replacing.insert(rank).second;
    if (rank < nodes.size()) give(rank, lost);
    if (!is_replaced) left.push_back(std::move(lost));
  }
  std::size_t newcomer = 0;
  for (const LostFiles& lost : left) {
    while (newcomer < nodes.size() &&
           (!nodes[newcomer].is_new || nodes[newcomer].copy_port == 0 || replacing.contains(newcomer))) {
      ++newcomer;
    }
    if (newcomer == nodes.size()) break;
    give(newcomer++, lost);
  }
}

}  // namespace lrun::launcher
