#include "supervise/hang_watch.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

const HangRules kRules{.timeout = Duration(8)};

TEST(HangWatch, StepsAreProgressWhereTheProgramTellsThem) {
  const RunProgress before{.steps = 5, .bytes = 10};
  EXPECT_TRUE(HangWatch::made_progress(kRules, Duration(1000), before, {.steps = 6, .bytes = 10}));
  EXPECT_FALSE(HangWatch::made_progress(kRules, Duration(1000), before, {.steps = 5, .bytes = 99}))
      << "a message 'still waiting' is no progress";
}

TEST(HangWatch, OutputIsProgressWhereItDoesNot) {
  EXPECT_TRUE(HangWatch::made_progress(kRules, Duration(1000), {.bytes = 10}, {.bytes = 11}));
  EXPECT_FALSE(HangWatch::made_progress(kRules, Duration(1000), {.bytes = 10}, {.bytes = 10}));
}

TEST(HangWatch, WithoutAnySignNothingIsCalledAHang) {
  EXPECT_TRUE(HangWatch::made_progress(kRules, Duration(1000), {.output_is_seen = false}, {.output_is_seen = false}));
}

TEST(HangWatch, ProcessorTimeCountsOnlyWhenItIsAskedFor) {
  const RunProgress before{.bytes = 10, .cpu_ticks = 100};
  const RunProgress busy{.bytes = 10, .cpu_ticks = 180};
  const RunProgress idle{.bytes = 10, .cpu_ticks = 101};
  EXPECT_FALSE(HangWatch::made_progress(kRules, Duration(1000), before, busy)) << "waiting collectives spin";
  const HangRules with_cpu{.timeout = Duration(8), .cpu_time_is_progress = true};
  EXPECT_TRUE(HangWatch::made_progress(with_cpu, Duration(1000), before, busy));
  EXPECT_FALSE(HangWatch::made_progress(with_cpu, Duration(1000), before, idle)) << "one percent is a timer";
}

/// The number of hangs that a watch reports for the given looks; the last look is repeated until there were `looks`.
int hangs_said(const std::vector<RunProgress>& given, int looks) {
  EventLoop loop;
  int said = 0;
  int made = 0;
  HangWatch watch(
      loop, kRules,
      [&] {
        if (made == looks) loop.stop();
        const auto index = std::min(static_cast<std::size_t>(made++), given.size() - 1);
        return given[index];
      },
      [&] { ++said; });
  loop.run();
  return said;
}

TEST(HangWatch, SaysOnceThatNothingGoesOn) {
  EXPECT_EQ(hangs_said({{.bytes = 1}}, 20), 1);
  EXPECT_EQ(hangs_said({{.bytes = 1}}, 3), 0) << "not before the whole time is over";
}

TEST(HangWatch, WatchesAnewWhatWentOn) {
  std::vector<RunProgress> looks(6, {.bytes = 1});
  looks.push_back({.bytes = 2});
  EXPECT_EQ(hangs_said(looks, 20), 2);
}

TEST(HangWatch, ATimeThatDoesNotCountIsNoHang) { EXPECT_EQ(hangs_said({{.counts = false, .bytes = 1}}, 20), 0); }

}  // namespace
}  // namespace lrun::launcher
