#include "logs/line_gap.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

TEST(LineGap, WorkersLinesAreLeftOutOnlyWhereTheyMayBe) {
  LineGap gap(100);
  EXPECT_FALSE(gap.allowed());
  EXPECT_FALSE(gap.takes("a\n", false, gap.allowed()));
  gap.allow("/logs");
  EXPECT_TRUE(gap.takes("a\n", false, gap.allowed()));
  EXPECT_TRUE(gap.takes("b\nc\n", false, gap.allowed()));
  EXPECT_TRUE(gap.is_open());
  EXPECT_EQ(gap.close(), "... 3 lines left out here, all in '/logs'\n");
  EXPECT_FALSE(gap.is_open());
  EXPECT_EQ(gap.close(), "") << "it was told";
}

TEST(LineGap, LinesThatAreNowhereElseForbidIt) {
  LineGap gap(100);
  gap.allow("/logs");
  gap.forbid();
  EXPECT_FALSE(gap.allowed());
}

TEST(LineGap, LrunsOwnLinesHaveRoomUpToTheLimit) {
  LineGap gap(10);
  EXPECT_FALSE(gap.takes("12345\n", true, false));
  EXPECT_TRUE(gap.takes("12345\n", true, false));
  EXPECT_EQ(gap.close(), "... 1 line of lrun itself left out here\n");
  gap.relieve();
  EXPECT_FALSE(gap.takes("12345\n", true, false)) << "the console had room meanwhile";
}

}  // namespace
}  // namespace lrun::launcher
