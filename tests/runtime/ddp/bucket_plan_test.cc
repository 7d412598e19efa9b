#include "runtime/ddp/bucket_plan.h"

#include <gtest/gtest.h>

namespace lrun::detail {
namespace {

TEST(BucketPlan, PacksInOrderAndClosesABucketWhenItIsFull) {
  // 1 KiB each, in float.
  const std::vector<BucketItem> items(5, {256, 4, 0});
  const auto plan = plan_buckets(items, reverse_order(5), {1024, 2048});
  ASSERT_EQ(plan.size(), 3U);
  EXPECT_EQ(plan[0].slots, (std::vector<BucketSlot>{{4, 0}}));
  EXPECT_EQ(plan[1].slots, (std::vector<BucketSlot>{{3, 0}, {2, 256}}));
  EXPECT_EQ(plan[2].slots, (std::vector<BucketSlot>{{1, 0}, {0, 256}}));
}

TEST(BucketPlan, ExceedsTheLimitByTheLastParameterAtMost) {
  const auto plan = plan_buckets({{1, 4, 0}, {1 << 20, 4, 0}, {1, 4, 0}}, reverse_order(3), {64, 128});
  ASSERT_EQ(plan.size(), 3U) << "a bias of 64 aligned bytes fills the first, the large one exceeds the second";
  EXPECT_EQ(plan[1].slots.size(), 1U);
}

TEST(BucketPlan, NeverMixesKinds) {
  const auto plan = plan_buckets({{8, 4, 0}, {8, 8, 1}, {8, 4, 0}, {8, 8, 1}}, reverse_order(4), {1 << 20, 1 << 20});
  ASSERT_EQ(plan.size(), 2U);
  EXPECT_EQ(plan[0].slots, (std::vector<BucketSlot>{{3, 0}, {1, 8}})) << "complete before the one with item 0";
  EXPECT_EQ(plan[1].slots, (std::vector<BucketSlot>{{2, 0}, {0, 16}}));
}

TEST(BucketPlan, AlignsEveryGradientAndEndsWithAFlagForEach) {
  const auto plan = plan_buckets({{3, 4, 0}, {17, 4, 0}, {1, 4, 0}}, reverse_order(3), {1 << 20, 1 << 20});
  ASSERT_EQ(plan.size(), 1U);
  EXPECT_EQ(plan[0].slots, (std::vector<BucketSlot>{{2, 0}, {1, 16}, {0, 48}}));
  EXPECT_EQ(plan[0].flags_offset, 64);
  EXPECT_EQ(plan[0].elements, 67);
}

TEST(BucketPlan, OfNothingIsEmpty) { EXPECT_TRUE(plan_buckets({}, {}, {1, 1}).empty()); }

TEST(BucketPlan, TakesTheOrderThatItIsGiven) {
  const auto plan = plan_buckets(std::vector<BucketItem>(4, {256, 4, 0}), {2, 0, 3, 1}, {1024, 2048});
  ASSERT_EQ(plan.size(), 3U);
  EXPECT_EQ(plan[0].slots, (std::vector<BucketSlot>{{2, 0}}));
  EXPECT_EQ(plan[1].slots, (std::vector<BucketSlot>{{0, 0}, {3, 256}}));
  EXPECT_EQ(plan[2].slots, (std::vector<BucketSlot>{{1, 0}}));
}

TEST(BucketPlan, FollowsAnOrderInWhichBucketsAreCompleteOneByOne) {
  const std::vector<BucketItem> items(5, {256, 4, 0});
  const auto plan = plan_buckets(items, reverse_order(5), {1024, 2048});  // {4}, {3, 2}, {1, 0}
  EXPECT_TRUE(follows(plan, {4, 3, 2, 1, 0}));
  EXPECT_TRUE(follows(plan, {4, 2, 3, 0, 1})) << "within a bucket the order does not matter";
  EXPECT_FALSE(follows(plan, {3, 2, 4, 1, 0}));
  EXPECT_FALSE(follows(plan, {4, 3, 1, 2, 0}));
  EXPECT_FALSE(follows(plan, {0, 1, 2, 3, 4}));
  EXPECT_TRUE(follows({}, {}));
}

TEST(ArrivalOrder, HasWhatDidNotArriveLast) {
  EXPECT_EQ(with_the_others_last({1, 3}, 5), (ArrivalOrder{1, 3, 4, 2, 0}));
  EXPECT_EQ(reverse_order(3), (ArrivalOrder{2, 1, 0}));
}

}  // namespace
}  // namespace lrun::detail
