#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lrun::inline core {

/// Ranks that were at the same place when the launcher looked, on one node or on all.
struct RankPlace {
  std::string verb;               ///< for one rank: 'waits in', 'is in', 'runs'
  std::string verb_all;           ///< for several: 'wait in', 'are in', 'run'
  std::string place;              ///< 'all_reduce at train.py:5', 'read() of a pipe'; may be empty
  bool waits_for_others = false;  ///< inside of a collective operation
  int count = 0;
  int first_rank = 0;  ///< the lowest

  static constexpr std::size_t kMostPlaceBytes = 600;

  bool operator==(const RankPlace&) const = default;
};

/// The places of both, with equal ones merged, in an order that does not depend on the order of merging. At most eight;
/// places where ranks wait for others are dropped before the rest. Pure.
std::vector<RankPlace> merge_places(std::vector<RankPlace> one, const std::vector<RankPlace>& other);

/// '7 ranks wait in all_reduce; rank 3 is in read() of a pipe': the most frequent first, and at most six. Empty without
/// places.
std::string describe_places(std::vector<RankPlace> places);

/// True without places.
bool all_wait_for_others(const std::vector<RankPlace>& places);

/// A hint what to look at where ranks wait for others that do not come. Other ranks may have ended, or were not seen.
/// Empty where none waits. Pure.
std::string hint_about_waiting(const std::vector<RankPlace>& places);

/// 'rank 0 waits for it in all_reduce at train.py:5', '7 ranks wait for it in …': the place where most ranks wait.
/// Empty without places, and when a rank is elsewhere: the others may wait for that one.
std::string describe_waiting(const std::vector<RankPlace>& places);

}  // namespace lrun::inline core
