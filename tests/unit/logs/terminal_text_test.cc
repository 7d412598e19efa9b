#include "logs/terminal_text.h"

#include <gtest/gtest.h>

#include <string>

namespace lrun::launcher {
namespace {

TEST(TerminalText, OfALineThatRedrewItselfIsWhatItDrewLast) {
  EXPECT_EQ(drawn_last("10%\r50%\r100%\n"), "100%\n");
  EXPECT_EQ(drawn_last("done\r\n"), "done\r\n") << "a terminal's end of a line";
  EXPECT_EQ(drawn_last("\r\n"), "\r\n");
}

TEST(TerminalSafe, LeavesOrdinaryTextAlone) {
  EXPECT_EQ(terminal_safe("loss\t0.25 \xC3\xBC \xE2\x82\xAC \xF0\x9F\x94\xA5"),
            "loss\t0.25 \xC3\xBC \xE2\x82\xAC \xF0\x9F\x94\xA5");
}

TEST(TerminalSafe, LeavesOutColoursCursorMovesAndTitles) {
  EXPECT_EQ(terminal_safe("\x1b[1;31merror\x1b[0m: \x1b[2Kx\x1b[1A"), "error: x");
  EXPECT_EQ(terminal_safe("\x1b]0;title\a"
                          "a"
                          "\x1b]8;;http://x\x1b\\"
                          "b"),
            "ab");
  EXPECT_EQ(terminal_safe("\x1b"
                          "7a\x1b(Bb"),
            "ab");
}

TEST(TerminalSafe, SurvivesEscapeSequencesThatAreCutOff) {
  EXPECT_EQ(terminal_safe("a\x1b"), "a");
  EXPECT_EQ(terminal_safe("a\x1b[12"), "a");
  EXPECT_EQ(terminal_safe("a\x1b]0;title"), "a");
  EXPECT_EQ(terminal_safe("\x1b[\x1b[31mred"), "red") << "a new sequence begins inside the old one";
}

TEST(TerminalSafe, ShowsControlCharactersAsText) {
  EXPECT_EQ(terminal_safe(std::string_view("\0\a\b\x7f", 4)), "\\x00\\x07\\x08\\x7f");
  EXPECT_EQ(terminal_safe("\xC2\x9B"
                          "31m"),
            "\\x9b31m")
      << "C1 CSI in UTF-8";
  EXPECT_EQ(terminal_safe("\xE2\x80\xAE"
                          "abc"),
            "\\u202eabc")
      << "right-to-left override";
}

TEST(TerminalSafe, ReplacesInvalidUtf8ByteByByte) {
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(terminal_safe("a\xFFz"), "a" + replacement + "z");
  EXPECT_EQ(terminal_safe("\xC0\xAF"), replacement + replacement) << "overlong";
  EXPECT_EQ(terminal_safe("\xED\xA0\x80"), replacement + replacement + replacement) << "surrogate";
  EXPECT_EQ(terminal_safe("\xE2\x82"), replacement + replacement) << "cut off";
  EXPECT_EQ(terminal_safe("\xE0\x80\x80"), replacement + replacement + replacement) << "overlong of three bytes";
  EXPECT_EQ(terminal_safe("\xF4\x90\x80\x80"), replacement + replacement + replacement + replacement)
      << "beyond U+10FFFF";
}

TEST(TerminalText, FitsColumns) {
  EXPECT_EQ(fitted("12345", 5), "12345");
  EXPECT_EQ(fitted("123456", 5), "1234…\x1b[0m");
  EXPECT_EQ(fitted("\x1b[31mred\x1b[0m", 3), "\x1b[31mred\x1b[0m") << "colours take no column";
  EXPECT_EQ(fitted("█████", 3), "██…\x1b[0m") << "a character is not cut";
  EXPECT_EQ(fitted("\xff\xff", 1), "…\x1b[0m") << "what is no text takes a column a byte";
  EXPECT_EQ(fitted("x", 0), "\x1b[0m");
  EXPECT_EQ(fitted("", 0), "");
}

}  // namespace
}  // namespace lrun::launcher
