#include "base/rank_list.h"

#include <gtest/gtest.h>

#include "base/shortened.h"

namespace lrun {
namespace {

TEST(RankList, JoinsNeighbours) {
  EXPECT_EQ(format_rank_list({}), "");
  EXPECT_EQ(format_rank_list({3}), "3");
  EXPECT_EQ(format_rank_list({5, 0, 2, 1, 1}), "0-2,5");
  EXPECT_EQ(ranks_text({7}), "rank 7");
  EXPECT_EQ(ranks_text({6, 7}), "ranks 6-7");
  EXPECT_EQ(ranks_text({1, 3}), "ranks 1,3");
}

TEST(Shortened, CutsBetweenCharacters) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "abc…");
  EXPECT_EQ(shortened("aäb", 2), "a…") << "the second byte is inside of ä";
}

}  // namespace
}  // namespace lrun
