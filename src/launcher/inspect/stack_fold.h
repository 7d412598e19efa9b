#pragma once

#include <string>
#include <vector>

#include "inspect/stack_sample.h"

namespace lrun::launcher {

/// Ranks that are at the same place.
struct StackGroup {
  std::vector<int> ranks;
  std::string verb;      ///< of one rank: 'waits in', 'is in', 'runs', 'is stopped', 'has ended'
  std::string verb_all;  ///< of several: 'wait in', 'are in', …
  std::string place;  ///< 'all_reduce at train.py:12', 'read() of a pipe, called from load (train.py:40)'; may be empty
  bool waits_for_others = false;  ///< inside of a collective operation
  StackSample example;            ///< of the lowest rank

  bool operator==(const StackGroup&) const = default;
};

/// Groups ranks whose stacks are the same, the largest group first and then by rank. Ranks that are inside of the same
/// collective operation, called from the same place, are one group wherever they are inside of it. Pure.
std::vector<StackGroup> fold_stacks(const std::vector<StackSample>& samples);

}  // namespace lrun::launcher
