#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plan/launch_plan.h"

namespace lrun {

/// One node of a job as all its launchers see it.
struct Member {
  int node_rank = 0;
  std::string name;
  int base_rank = 0;  ///< rank of its first worker
  int workers = 0;

  bool operator==(const Member&) const = default;
};

/// What a rendezvous agrees on: who takes part in one round of a job, and where the workers' store is. Everything right
/// of it (workers, supervision, reports) reads this and not how it came about.
struct Membership {
  int round = 0;      ///< grows with every new agreement
  int attempt = 0;    ///< restarts used so far; workers see it as TORCHELASTIC_RESTART_COUNT
  int node_rank = 0;  ///< which member we are
  int world_size = 1;
  std::string master_addr;
  int master_port = 0;
  std::vector<Member> members;  ///< by node rank; never empty

  [[nodiscard]] const Member& self() const { return members.at(static_cast<std::size_t>(node_rank)); }
  bool operator==(const Membership&) const = default;
};

/// The agreement of a launcher that is alone: nobody to ask. `master_port` is that of its own store's socket.
Membership sole_membership(const LaunchPlan& plan, int master_port);

}  // namespace lrun
