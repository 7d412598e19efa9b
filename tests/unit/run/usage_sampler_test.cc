#include "run/usage_sampler.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

constexpr Duration kSecond(1000);
constexpr Duration kDay = 86'400 * kSecond;

TEST(UsageInterval, GrowsWithTheTimeThatTheRunHasLasted) {
  EXPECT_EQ(usage_interval(Duration::zero(), Duration::zero()), kSecond);
  EXPECT_EQ(usage_interval(240 * kSecond, Duration(1)), kSecond);
  EXPECT_EQ(usage_interval(2400 * kSecond, Duration(1)), 10 * kSecond);
  EXPECT_EQ(usage_interval(kDay, Duration(1)), 360 * kSecond);
}

TEST(UsageInterval, LetsALookThatTakesLongBeARareOne) {
  EXPECT_EQ(usage_interval(Duration::zero(), Duration(2)), kSecond);
  EXPECT_EQ(usage_interval(Duration::zero(), Duration(40)), 8 * kSecond);
  EXPECT_EQ(usage_interval(kDay, Duration(40)), 360 * kSecond);
}

TEST(UsageInterval, BoundsTheSamplesOfALongRun) {
  int samples = 0;
  for (Duration lasted{}; lasted < 30 * kDay; lasted += usage_interval(lasted, Duration(1))) ++samples;
  EXPECT_LT(samples, 3000) << "in a month";
  EXPECT_GT(samples, 2000);
}

}  // namespace
}  // namespace lrun::launcher
