#include "runtime/ddp/shard_plan.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace lrun::detail {

ShardPlan empty_shard_plan(int world_size) {
  return {{}, std::vector<std::int64_t>(static_cast<std::size_t>(world_size), 0)};
}

ShardPlan extend(ShardPlan plan, const std::vector<std::int64_t>& bytes) {
  std::vector<std::size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t index) { return bytes[index]; });
  const std::size_t before = plan.owners.size();
  plan.owners.resize(before + bytes.size());
  for (const std::size_t index : order) {
    const auto least = std::ranges::min_element(plan.bytes);  // the first of equals
    *least += bytes[index];
    plan.owners[before + index] = static_cast<int>(least - plan.bytes.begin());
  }
  return plan;
}

}  // namespace lrun::detail
