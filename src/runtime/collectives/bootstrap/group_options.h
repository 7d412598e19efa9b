#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "runtime/collectives/bootstrap/store_client.h"
#include "runtime/collectives/common/failure.h"

namespace lrun::detail {

/// The longest timeout: ten years. Longer ones are reduced to it, because as a deadline they would overflow a clock.
inline constexpr std::chrono::milliseconds kLongestTimeout = std::chrono::hours(24 * 3650);

/// The options with which the processes of a group find each other. Equal on all ranks but for `rank` and
/// `store.serve`.
struct GroupOptions {
  int rank = 0;
  int world_size = 1;
  StoreAddress store;
  /// Distinguishes groups that share a store: run, attempt and group of the program. Groups with equal names are
  /// distinguished by the order in which a process makes them.
  std::string name = "default";
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  /// If this group is a part of another one: the ranks there, which messages use. Empty: the same ranks.
  std::vector<int> ranks_above;
  /// The identity of this rank's host, for the choice of a backend. Empty: from the kernel. Tests set it to give the
  /// processes of one machine several hosts.
  std::string host;

  [[nodiscard]] int name_of(int some_rank) const { return name_of_rank(some_rank, ranks_above); }
};

}  // namespace lrun::detail
