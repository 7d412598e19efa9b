#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/launch_plan.h"

namespace lrun::launcher {

/// A node whose files in memory another node has copies of.
struct FileOwner {
  std::string token;  ///< as in its JoinRecord
  int node_rank = 0;  ///< in its last round

  bool operator==(const FileOwner&) const = default;
};

/// The files in memory of a lost node, and the node that has copies of them.
struct LostFiles {
  FileOwner owner;
  std::string address;  ///< numeric
  int port = 0;
  std::string key;  ///< as JoinRecord::copy_key there

  bool operator==(const LostFiles&) const = default;
};

/// One node of a job as all its launchers see it.
struct Member {
  int node_rank = 0;
  std::string name;
  int base_rank = 0;  ///< rank of its first worker
  int workers = 0;
  std::string address = {};  ///< numeric: where the others reach it; empty on one node
  std::string role = "default";
  int base_role_rank = 0;                      ///< rank of its first worker among the workers of its role
  int role_world_size = 0;                     ///< workers of its role on all nodes
  bool shares_name = false;                    ///< another node has the same name
  std::map<int, int> earlier_by_workers = {};  ///< as Membership::nodes_by_workers, of the nodes before this one
  /// Numeric address of the node that keeps copies of its files in memory; empty: none does.
  std::string neighbour = {};
  int neighbour_port = 0;
  std::string neighbour_key = {};         ///< as JoinRecord::copy_key there
  std::vector<FileOwner> keeps_for = {};  ///< the nodes whose neighbour it is, at most kMostInherited
  std::vector<LostFiles> inherits = {};   ///< that it gets before its workers start, at most kMostInherited

  static constexpr std::size_t kMostInherited = 64;

  bool operator==(const Member&) const = default;
};

/// A node whose launcher can lead a job in another's place.
struct Successor {
  int node_rank = 0;
  std::string name;
  std::string address;   ///< numeric
  int standby_port = 0;  ///< its launcher listens there

  bool operator==(const Successor&) const = default;
};

/// The agreement of a rendezvous: all that one node has to know of one round of a job, with the address of the workers'
/// store. Workers, supervision and reports read this, and not how it was reached. All but `self` is equal on all nodes.
/// Its size grows with the number of different worker counts, not of nodes.
struct Membership {
  int round = 0;             ///< grows with every new agreement; alone: with every attempt
  int attempt = 0;           ///< restarts used so far; workers see it as TORCHELASTIC_RESTART_COUNT
  std::string history = {};  ///< of the attempts so far, as in kReady; opaque here
  int num_nodes = 1;
  int world_size = 1;
  std::string run_id = {};    ///< of the job, the same in all rounds; empty on one node: the plan's
  std::string run_name = {};  ///< of the job; empty on one node: the plan's
  std::string master_addr;
  int master_port = 0;
  std::map<int, int> nodes_by_workers;   ///< how many nodes have so many workers, for each number that there is
  std::vector<std::string> first_names;  ///< of the first nodes by rank, at most kMostNamedNodes, for messages
  /// Node rank and name of the leader, and the nodes that may lead in its place, by node rank, at most kMostSuccessors.
  /// Empty: etcd knows the leader.
  std::optional<int> leader = {};
  std::string leader_name = {};
  std::vector<Successor> successors = {};
  Member self;  ///< this node

  static constexpr std::size_t kMostNamedNodes = 9;  ///< eight others, and this one may be among them
  static constexpr std::size_t kMostSuccessors = 8;

  bool operator==(const Membership&) const = default;
};

/// The membership of a launcher that is alone. `master_port` is that of its own store's socket.
Membership sole_membership(const LaunchPlan& plan, int master_port);

/// The part that is equal on all nodes, and the one that is not.
std::string to_json(const Membership& membership);
std::string to_json(const Member& member);
/// The nodes that may lead next, for a launcher that is in no round.
std::string to_json(const std::vector<Successor>& successors);

/// Empty for what is not JSON or lacks a field; only membership_from_json() checks the numbers of ranks.
std::optional<Member> member_from_json(std::string_view text);

/// Its fields are in range.
bool is_sound(const FileOwner& owner);
std::string to_json(const std::vector<FileOwner>& owners);
/// Empty for what is not JSON or out of range, and for more than Member::kMostInherited.
std::optional<std::vector<FileOwner>> file_owners_from_json(std::string_view text);

/// Empty for what is not JSON, lacks a field, or holds a value out of its range.
std::optional<std::vector<Successor>> successors_from_json(std::string_view text);

/// Empty for what is not JSON, lacks a field, or contradicts itself.
std::optional<Membership> membership_from_json(std::string_view common, std::string_view self);

}  // namespace lrun::launcher
