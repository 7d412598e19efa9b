#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lrun::inline core {

/// Ranks that were at one place when they were looked at, on one node or on all.
struct RankPlace {
  std::string verb;               ///< of one rank: 'waits in', 'is in', 'runs'
  std::string verb_all;           ///< of several: 'wait in', 'are in', 'run'
  std::string place;              ///< 'all_reduce at train.py:5', 'read() of a pipe'; may be empty
  bool waits_for_others = false;  ///< inside of a collective operation
  int count = 0;
  int first_rank = 0;  ///< the lowest

  static constexpr std::size_t kMostPlaceBytes = 600;

  bool operator==(const RankPlace&) const = default;
};

/// The places of the ranks of both, equal ones as one, in a fixed order: the same whatever is put together first. At
/// most eight; those where ranks wait for others are left out before the rest. Pure.
std::vector<RankPlace> put_together(std::vector<RankPlace> one, const std::vector<RankPlace>& other);

/// '7 ranks wait in all_reduce; rank 3 is in read() of a pipe': the most frequent first, and at most six. Empty without
/// places.
std::string in_words(std::vector<RankPlace> places);

/// True without places.
bool all_wait_for_others(const std::vector<RankPlace>& places);

/// 'rank 0 waits for it in all_reduce at train.py:5', '7 ranks wait for it in …': the place where most wait. Empty when
/// a rank is elsewhere, for which the others may wait, or nobody looked.
std::string waiting_in_words(const std::vector<RankPlace>& places);

}  // namespace lrun::inline core
