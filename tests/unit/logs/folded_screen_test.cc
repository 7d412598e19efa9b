#include "logs/folded_screen.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

constexpr FoldedScreen::Size kSize{20, 24};

FoldedScreen::Line line(std::uint64_t id, const std::string& shown) { return {id, shown, shown}; }

/// Lines 1, 2 and 3 on a terminal of 20 columns.
FoldedScreen three_lines() {
  FoldedScreen screen;
  screen.wrote(1, "[0] one", kSize);
  screen.wrote(2, "[0] two", kSize);
  screen.wrote(3, "[0] three", kSize);
  return screen;
}

TEST(FoldedScreen, RedrawsALineWhereItStands) {
  EXPECT_EQ(three_lines().redraw({line(3, "[0,1] three")}, kSize), "\r\x1b[1A\x1b[2K[0,1] three\r\x1b[1B");
  EXPECT_EQ(three_lines().redraw({line(2, "[0,1] two")}, kSize), "\r\x1b[2A\x1b[2K[0,1] two\r\x1b[1B\x1b[1B");
  EXPECT_EQ(three_lines().redraw({line(1, "A"), line(3, "B")}, kSize),
            "\r\x1b[3A\x1b[2KA\r\x1b[1B\x1b[1B\x1b[2KB\r\x1b[1B");
}

TEST(FoldedScreen, DoesNothingWhereALineIsNotInItsPlace) {
  EXPECT_EQ(three_lines().redraw({line(3, "x"), line(9, "x")}, kSize), "") << "unknown";
  EXPECT_EQ(three_lines().redraw({line(3, "x")}, {30, 24}), "") << "the terminal was resized: lines may have moved";
  EXPECT_EQ(three_lines().redraw({line(3, std::string(20, 'x'))}, kSize), "") << "it would wrap";
  EXPECT_EQ(three_lines().redraw({}, kSize), "");
  FoldedScreen low;
  for (std::uint64_t id = 1; id <= 3; ++id) low.wrote(id, "x", {20, 3});
  EXPECT_EQ(low.redraw({line(1, "y")}, {20, 3}), "") << "it is out of sight";
  EXPECT_NE(low.redraw({line(2, "y")}, {20, 3}), "");
  FoldedScreen screen = three_lines();
  screen.forget();
  EXPECT_EQ(screen.redraw({line(3, "x")}, kSize), "");
}

TEST(FoldedScreen, ForgetsWhatIsAboveALineThatMayWrap) {
  for (const std::string& text :
       {std::string(20, 'x'), std::string("a\tb"), std::string("\x1b[5A"), std::string("ééééééééééé")}) {
    FoldedScreen screen = three_lines();
    screen.wrote(4, text, kSize);
    screen.wrote(5, "short", kSize);
    EXPECT_EQ(screen.redraw({line(3, "x")}, kSize), "") << text;
    EXPECT_EQ(screen.redraw({line(4, "x")}, kSize), "") << text;
    EXPECT_NE(screen.redraw({line(5, "x")}, kSize), "") << text;
  }
}

TEST(FoldedScreen, ReachesNoHigherThanATerminal) {
  FoldedScreen screen;
  for (std::uint64_t id = 1; id <= 21; ++id) screen.wrote(id, "x", kSize);
  EXPECT_EQ(screen.redraw({line(1, "y")}, kSize), "");
  EXPECT_NE(screen.redraw({line(2, "y")}, kSize), "");
}

}  // namespace
}  // namespace lrun::launcher
