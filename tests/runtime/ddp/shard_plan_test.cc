#include "runtime/ddp/shard_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace lrun::detail {
namespace {

using Sizes = std::vector<std::int64_t>;

ShardPlan plan_of(int world_size, const Sizes& bytes) { return extend(empty_shard_plan(world_size), bytes); }

TEST(ShardPlan, GivesTheLargestFirstToTheRankWithTheFewestBytes) {
  const auto plan = plan_of(2, {1, 7, 3, 5});
  EXPECT_EQ(plan.owners, (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(plan.bytes, (Sizes{8, 8}));
}

TEST(ShardPlan, GivesEqualOnesOutInTheirOrder) {
  EXPECT_EQ(plan_of(3, {4, 4, 4, 4, 4}).owners, (std::vector<int>{0, 1, 2, 0, 1}));
}

TEST(ShardPlan, LeavesRanksEmptyWhenThereAreFewParameters) {
  const auto plan = plan_of(4, {8, 8});
  EXPECT_EQ(plan.bytes, (Sizes{8, 8, 0, 0}));
  EXPECT_EQ(plan_of(4, {}), empty_shard_plan(4));
}

TEST(ShardPlan, KeepsTheOwnersOfThoseThatWereThereBefore) {
  const auto before = plan_of(3, {9, 1, 4});
  const auto after = extend(before, {2, 20, 0});
  EXPECT_EQ(before.owners, (std::vector<int>{0, 2, 1}));
  EXPECT_EQ(after.owners, (std::vector<int>{0, 2, 1, 1, 2, 1}));
  EXPECT_EQ(after.bytes, (Sizes{9, 6, 21}));
}

TEST(ShardPlan, GivesNoRankMoreThanTheMeanAndOneParameter) {
  std::uint64_t random = 1;
  const auto draw = [&](std::uint64_t limit) {  // Knuth's MMIX generator; its upper bits
    random = random * 6364136223846793005U + 1442695040888963407U;
    return (random >> 33U) % limit;
  };
  for (int turn = 0; turn < 200; ++turn) {
    Sizes bytes(1 + draw(40));
    for (auto& size : bytes) size = static_cast<std::int64_t>(draw(10'000));
    const int world_size = 1 + static_cast<int>(draw(9));
    const auto plan = plan_of(world_size, bytes);
    const std::int64_t whole = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
    EXPECT_EQ(std::accumulate(plan.bytes.begin(), plan.bytes.end(), std::int64_t{0}), whole);
    EXPECT_LE(std::ranges::max(plan.bytes), whole / world_size + std::ranges::max(bytes)) << "turn " << turn;
  }
}

}  // namespace
}  // namespace lrun::detail
