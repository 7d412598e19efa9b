#pragma once

#include <cstdint>
#include <vector>

namespace lrun::detail {

/// Which rank keeps the optimizer state of which parameter: a value.
struct ShardPlan {
  std::vector<int> owners;          ///< Of each parameter: 0 … world size−1.
  std::vector<std::int64_t> bytes;  ///< Of the parameters of each rank.

  bool operator==(const ShardPlan&) const = default;
};

/// `plan` with more parameters behind those that it has, whose owners stay: the largest first (equal ones in their
/// order), each to the rank with the fewest bytes so far (of equals the lowest). So no rank has more than the mean and
/// one parameter, and every rank that has the same sizes comes to the same plan.
ShardPlan extend(ShardPlan plan, const std::vector<std::int64_t>& bytes);

/// A plan without parameters.
ShardPlan empty_shard_plan(int world_size);

}  // namespace lrun::detail
