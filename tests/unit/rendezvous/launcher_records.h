#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "rendezvous/join_record.h"
#include "rendezvous/rank_assignment.h"

namespace lrun::test {
using namespace launcher;

/// '10.0.0.7': '20260102-030405-000007'.
inline std::string run_id_of(const std::string& address) {
  const std::string last = address.substr(address.find_last_of(".:") + 1);
  return "20260102-030405-" + std::string(6 - std::min<std::size_t>(6, last.size()), '0') + last;
}

/// A node as tests of the rendezvous describe it.
inline JoinRecord node_at(const std::string& address, int workers = 1, std::optional<int> node_rank = {}) {
  JoinRecord record;
  record.token = "token of " + address;
  record.run_id = run_id_of(address);
  record.node = "node-" + address;
  record.address = address;
  record.leader_address = "10.0.0.1";
  record.workers = workers;
  record.node_rank = node_rank;
  record.store_port = 4000 + workers;
  record.min_nodes = record.max_nodes = 2;
  record.settings = "strategy ddp";
  return record;
}

inline JoinRecord with_role(JoinRecord record, std::string role) {
  record.role = std::move(role);
  return record;
}

/// The membership of one of the nodes.
inline Membership seen_by(std::size_t node_rank, const RankAssignment& assignment) {
  Membership membership = assignment.common;
  membership.self = assignment.members.at(node_rank);
  return membership;
}

}  // namespace lrun::test
