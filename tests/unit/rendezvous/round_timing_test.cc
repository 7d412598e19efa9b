#include "rendezvous/round_timing.h"

#include <gtest/gtest.h>

#include <chrono>

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;

const SteadyTime kOpened{std::chrono::seconds(100)};
constexpr RendezvousTimes kTimesOfRounds{.join = 60s, .replacement = 30s, .last_call = 1s, .progress = 5s};

TEST(RoundTiming, HoldsARoundBackUntilNobodyHasComeForAPause) {
  RoundTiming timing(kTimesOfRounds, kOpened);
  timing.joined(kOpened);
  EXPECT_FALSE(timing.call_is_over(false, kOpened));
  timing.joined(kOpened + 900ms);
  EXPECT_FALSE(timing.call_is_over(false, kOpened + 1800ms));
  EXPECT_EQ(timing.call_end(), kOpened + 1900ms);
  EXPECT_TRUE(timing.call_is_over(false, kOpened + 1900ms));
}

TEST(RoundTiming, HoldsNoFullRoundBack) {
  RoundTiming timing(kTimesOfRounds, kOpened);
  timing.joined(kOpened);
  EXPECT_TRUE(timing.call_is_over(true, kOpened));
}

TEST(RoundTiming, HoldsNoRoundBackForMoreThanTenPauses) {
  RoundTiming timing(kTimesOfRounds, kOpened);
  (void)timing.call_is_over(false, kOpened);
  timing.joined(kOpened + 9500ms);
  EXPECT_TRUE(timing.call_is_over(false, kOpened + 10s));
  timing.cancel_call();
  EXPECT_FALSE(timing.call_is_over(false, kOpened + 10s)) << "the next call is a new one";
}

TEST(RoundTiming, WaitsForSparesBeforeTheFirstRound) {
  RendezvousTimes times = kTimesOfRounds;
  times.spares = 1;
  RoundTiming timing(times, kOpened);
  timing.joined(kOpened);
  EXPECT_FALSE(timing.first_call_is_over(false, kOpened + 1s));
  EXPECT_EQ(timing.first_call_end(), kOpened + 1s + times.for_spares) << "since there are enough of the others";
  EXPECT_TRUE(timing.first_call_is_over(true, kOpened + 1s));
  EXPECT_TRUE(timing.first_call_is_over(false, timing.first_call_end()));
}

TEST(RoundTiming, GivesUpWhereLaunchersDoNotJoin) {
  RoundTiming timing(kTimesOfRounds, kOpened);
  EXPECT_FALSE(timing.join_is_overdue(kOpened + 59s));
  EXPECT_TRUE(timing.join_is_overdue(kOpened + 60s));
  timing.open(kOpened + 50s);
  EXPECT_FALSE(timing.join_is_overdue(kOpened + 60s)) << "they meet anew";
}

TEST(RoundTiming, GivesUpWhereNoReplacementComes) {
  RoundTiming timing(kTimesOfRounds, kOpened);
  EXPECT_FALSE(timing.replacement_is_overdue(kOpened + 1h));
  timing.fall_short(kOpened);
  timing.fall_short(kOpened + 20s);
  EXPECT_TRUE(timing.is_short());
  EXPECT_TRUE(timing.replacement_is_overdue(kOpened + 30s));
  timing.end_shortage();
  EXPECT_FALSE(timing.replacement_is_overdue(kOpened + 1h));
}

TEST(RoundTiming, ShowsATableEveryFewSeconds) {
  RoundTiming timing(kTimesOfRounds, kOpened);
  EXPECT_FALSE(timing.table_is_due(kOpened + 4s));
  EXPECT_EQ(timing.first_deadline(false), kOpened + 5s);
  timing.told(kOpened + 5s);
  EXPECT_FALSE(timing.table_is_due(kOpened + 9s));
  timing.fall_short(kOpened + 9s);
  EXPECT_EQ(timing.shortage_deadline(), kOpened + 14s);
}

}  // namespace
}  // namespace lrun::launcher
