#include "plan/rank_ranges.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

TEST(RankRanges, AreNumbersAndRanges) {
  EXPECT_EQ(parse_ranks("0"), (RankRanges{{0, 0}}));
  EXPECT_EQ(parse_ranks("0,4-7"), (RankRanges{{0, 0}, {4, 7}}));
  for (const char* const text : {"", ",", "1,", "-1", "3-2", "a", "1-", "1--2", "99999999999"}) {
    EXPECT_EQ(parse_ranks(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace lrun::launcher
