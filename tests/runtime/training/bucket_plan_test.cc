#include "runtime/bucket_plan.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

TEST(BucketPlan, PacksInReverseOrderAndClosesABucketWhenItIsFull) {
  // 1 KiB each, in float.
  const std::vector<BucketItem> items(5, {256, 4, 0});
  const auto plan = plan_buckets(items, 1024, 2048);
  ASSERT_EQ(plan.size(), 3U);
  EXPECT_EQ(plan[0].slots, (std::vector<BucketSlot>{{4, 0}}));
  EXPECT_EQ(plan[1].slots, (std::vector<BucketSlot>{{3, 0}, {2, 256}}));
  EXPECT_EQ(plan[2].slots, (std::vector<BucketSlot>{{1, 0}, {0, 256}}));
}

TEST(BucketPlan, ExceedsTheLimitByTheLastParameterAtMost) {
  const auto plan = plan_buckets({{1, 4, 0}, {1 << 20, 4, 0}, {1, 4, 0}}, 64, 128);
  ASSERT_EQ(plan.size(), 3U) << "a bias of 64 aligned bytes fills the first, the large one exceeds the second";
  EXPECT_EQ(plan[1].slots.size(), 1U);
}

TEST(BucketPlan, NeverMixesKinds) {
  const auto plan = plan_buckets({{8, 4, 0}, {8, 8, 1}, {8, 4, 0}, {8, 8, 1}}, 1 << 20, 1 << 20);
  ASSERT_EQ(plan.size(), 2U);
  EXPECT_EQ(plan[0].slots, (std::vector<BucketSlot>{{3, 0}, {1, 8}})) << "complete before the one with item 0";
  EXPECT_EQ(plan[1].slots, (std::vector<BucketSlot>{{2, 0}, {0, 16}}));
}

TEST(BucketPlan, AlignsEveryGradientAndEndsWithAFlagForEach) {
  const auto plan = plan_buckets({{3, 4, 0}, {17, 4, 0}, {1, 4, 0}}, 1 << 20, 1 << 20);
  ASSERT_EQ(plan.size(), 1U);
  EXPECT_EQ(plan[0].slots, (std::vector<BucketSlot>{{2, 0}, {1, 16}, {0, 48}}));
  EXPECT_EQ(plan[0].flags_offset, 64);
  EXPECT_EQ(plan[0].elements, 67);
}

TEST(BucketPlan, OfNothingIsEmpty) { EXPECT_TRUE(plan_buckets({}, 1, 1).empty()); }

}  // namespace
}  // namespace lrun
