#include "logs/live_line.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

TEST(LiveLine, IsWipedInPlace) {
  LiveLine line;
  EXPECT_FALSE(line.is_shown());
  line.show("50%");
  EXPECT_TRUE(line.is_shown());
  EXPECT_EQ(line.wipe(), "\r\x1b[K");
  EXPECT_FALSE(line.is_shown());
  line.show("");
  EXPECT_FALSE(line.is_shown()) << "nothing to show";
}

TEST(LiveLine, AnotherProgramsLineIsDrawnAgainOnceItWasWiped) {
  LiveLine line;
  line.set_other(true, "(gdb) b");
  EXPECT_TRUE(line.is_shown());
  EXPECT_EQ(line.to_redraw(), "") << "it stands there";
  (void)line.wipe();
  EXPECT_EQ(line.to_redraw(), "(gdb) b");
  line.set_other(false, "");
  EXPECT_EQ(line.to_redraw(), "");
}

TEST(LiveLine, ALineThatCannotBeDrawnAgainStays) {
  LiveLine line;
  line.set_other(true, "");
  EXPECT_EQ(line.wipe(), "\n");
  EXPECT_EQ(line.to_redraw(), "");
}

}  // namespace
}  // namespace lrun::launcher
