#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/collectives/bootstrap/store_client.h"

namespace lrun::detail {

/// Longer ones are shortened to it, ten years: as a deadline they would not fit a clock.
inline constexpr std::chrono::milliseconds kLongestTimeout = std::chrono::hours(24 * 3650);

/// What a group of processes needs to find each other. All ranks say the same but for `rank` and `store.serve`.
struct GroupOptions {
  int rank = 0;
  int world_size = 1;
  StoreAddress store;
  /// Tells groups that share a store from each other: run, attempt and which group of the program. Groups with equal
  /// names are told apart by the order in which a process makes them.
  std::string name = "default";
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  /// What the ranks are called in messages, when this group is a part of another one: their ranks there. Empty: the
  /// same.
  std::vector<int> ranks_above;
  /// What tells this rank's host from others when a backend is chosen. Empty: what the kernel says. Tests give the
  /// processes of one machine several hosts by it.
  std::string host;

  [[nodiscard]] int name_of(int some_rank) const {
    return ranks_above.empty() ? some_rank : ranks_above[static_cast<std::size_t>(some_rank)];
  }
};

}  // namespace lrun::detail
