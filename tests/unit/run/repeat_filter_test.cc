#include "run/repeat_filter.h"

#include <gtest/gtest.h>

#include <vector>

namespace lrun::launcher {
namespace {

TEST(RepeatFilter, RepeatsWhatStaysTheSameEverMoreSeldom) {
  RepeatFilter told;
  std::vector<int> lines;
  for (int i = 1; i <= 120; ++i) {
    if (told.is_worth_a_line("node 1 is missing")) lines.push_back(i);
  }
  EXPECT_EQ(lines, (std::vector<int>{1, 2, 4, 8, 16, 32, 64}));
}

TEST(RepeatFilter, TellsWhatIsNewAtOnce) {
  RepeatFilter told;
  for (int i = 0; i < 3; ++i) (void)told.is_worth_a_line("nodes 1 and 2 are missing");
  EXPECT_TRUE(told.is_worth_a_line("node 2 is missing"));
  EXPECT_TRUE(told.is_worth_a_line("nodes 1 and 2 are missing")) << "again";
}

}  // namespace
}  // namespace lrun::launcher
