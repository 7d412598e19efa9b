#include "logs/rank_prefix.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

TEST(RankPrefix, IsAlignedToTheHighestRank) {
  EXPECT_EQ(rank_prefix(3, rank_width(10), false), "[3] ");
  EXPECT_EQ(rank_prefix(3, rank_width(11), false), "[ 3] ");
  EXPECT_EQ(rank_prefix(255, rank_width(256), false), "[255] ");
}

TEST(RankPrefix, WidthIsThatOfTheHighestRankNotOfTheWorldSize) {
  EXPECT_EQ(rank_width(1), 1);
  EXPECT_EQ(rank_width(10), 1);
  EXPECT_EQ(rank_width(100), 2);
  EXPECT_EQ(rank_width(1001), 4);
}

TEST(RankPrefix, ColoursTheRankAndEndsTheColourBeforeTheText) {
  EXPECT_EQ(rank_prefix(0, 1, true), "\x1b[36m[0]\x1b[0m ");
  EXPECT_NE(rank_prefix(0, 1, true), rank_prefix(10, 1, true)) << "the text differs though the colour comes again";
}

}  // namespace
}  // namespace lrun::launcher
