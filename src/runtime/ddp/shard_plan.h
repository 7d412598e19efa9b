#pragma once

#include <cstdint>
#include <vector>

namespace lrun::detail {

/// The assignment of each parameter's optimizer state to a rank: a value.
struct ShardPlan {
  std::vector<int> owners;          ///< Of each parameter: 0 … world size−1.
  std::vector<std::int64_t> bytes;  ///< Of the parameters of each rank.

  bool operator==(const ShardPlan&) const = default;
};

/// `plan` with further parameters behind the present ones, whose owners stay. The largest is assigned first (equal ones
/// in their order), each to the rank with the fewest bytes so far (of equals the lowest). So no rank has more than the
/// mean and one parameter, and every rank with the same sizes makes the same plan.
ShardPlan extend(ShardPlan plan, const std::vector<std::int64_t>& bytes);

/// A plan without parameters.
ShardPlan empty_shard_plan(int world_size);

}  // namespace lrun::detail
