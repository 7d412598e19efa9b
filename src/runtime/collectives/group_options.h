#pragma once

#include <chrono>
#include <string>

#include "runtime/collectives/store_client.h"

namespace lrun {

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
};

}  // namespace lrun
