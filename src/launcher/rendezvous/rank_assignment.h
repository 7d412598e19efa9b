#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plan/launch_plan.h"
#include "rendezvous/join_record.h"
#include "rendezvous/membership.h"

namespace lrun::launcher {

/// All nodes of a round and their places, as the leader assigned them.
struct RankAssignment {
  Membership common;               ///< without `self`
  std::vector<Member> members;     ///< by node rank; never empty
  std::vector<std::size_t> order;  ///< of each member its index among those that joined
};

/// Places the nodes that joined, in their order of node ranks, and gives ranks to their workers. The master is node 0.
/// \param run_id  of the job; empty: this is its first round, and node 0's becomes the job's
///
/// A node that reached the leader over loopback is on its host: others reach it where they reached the leader.
RankAssignment assign_ranks(const std::vector<JoinRecord>& nodes, const std::string& run_id = {});

/// Indices of `nodes` in the order of their node ranks. A node gets the rank that it asked for, if there are so many
/// nodes and no other node has asked for it. The others follow by address (as a number: 10.0.0.2 comes before
/// 10.0.0.10), name and token. The same nodes always come in the same order.
std::vector<std::size_t> order_nodes(const std::vector<JoinRecord>& nodes);

/// The plan of our own node in a round: one node, with its place among all.
LaunchPlan place(const LaunchPlan& plan, const Membership& membership);
/// The same for a plan that has a place, in another round: its node stays where it is in memory.
void place_anew(LaunchPlan& plan, const Membership& membership);

}  // namespace lrun::launcher
