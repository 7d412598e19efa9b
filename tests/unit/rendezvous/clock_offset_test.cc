#include "rendezvous/clock_offset.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

TEST(ClockOffset, IsTheDistanceOfTheClocksInTheMiddleOfTheWay) {
  ClockOffset offset;
  offset.update(1000, {.steady_ns = 5050, .wall_ns = 9050}, {.steady_ns = 1100, .wall_ns = 7100}, false);
  EXPECT_EQ(offset, (ClockOffset{.steady_ns = 4000, .wall_ns = 2000, .round_trip_ns = 100}));
}

TEST(ClockOffset, IsThatOfTheQuickestHeartbeat) {
  ClockOffset offset;
  offset.update(1000, {5050, 0}, {1100, 0}, false);
  const ClockOffset quickest = offset;
  offset.update(2000, {9000, 0}, {2100, 0}, false);
  EXPECT_EQ(offset, quickest) << "it was no quicker";
  offset.update(3000, {7005, 0}, {3010, 0}, false);
  EXPECT_EQ(offset.steady_ns, 4000);
  EXPECT_EQ(offset.round_trip_ns, 10);
}

TEST(ClockOffset, IsZeroOnOneHost) {
  ClockOffset offset;
  offset.update(1000, {1060, 5}, {1100, 5}, true);
  EXPECT_EQ(offset, (ClockOffset{.steady_ns = 0, .wall_ns = 0, .round_trip_ns = 100}));
}

TEST(ClockOffset, DoesNotBelieveAnAnswerThatMakesNoSense) {
  for (const std::int64_t sent : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{2000}}) {
    ClockOffset offset;
    offset.update(sent, {5050, 0}, {1100, 0}, false);
    EXPECT_EQ(offset, ClockOffset()) << sent;
  }
}

}  // namespace
}  // namespace lrun::launcher
