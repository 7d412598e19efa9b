#include "logs/other_progress_line.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

constexpr int kColumns = 20;

OtherProgressLine after(std::initializer_list<std::string_view> pieces) {
  OtherProgressLine line;
  for (const std::string_view piece : pieces) line.take(piece, kColumns);
  return line;
}

TEST(OtherProgressLine, IsWhatStandsBehindTheLastNewline) {
  EXPECT_FALSE(after({"a line\r\n"}).open());
  const OtherProgressLine prompt = after({"a line\r\n(gd", "b) "});
  EXPECT_TRUE(prompt.open());
  EXPECT_EQ(prompt.drawing(), "(gdb) ");
  EXPECT_FALSE(after({"(gdb) run\r\n"}).open());
}

TEST(OtherProgressLine, IsDrawnAgainAsItWasEdited) {
  EXPECT_EQ(after({"\x1b[?2004h(gdb) ", "bt", "\b\x1b[K", "\x1b[1mr\x1b[0m"}).drawing(),
            "\x1b[?2004h(gdb) bt\b\x1b[K\x1b[1mr\x1b[0m");
  EXPECT_EQ(after({"(gdb) ab", "\x1b", "[", "2", "D"}).drawing(), "(gdb) ab\x1b[2D") << "a sequence in pieces";
  EXPECT_EQ(after({"(gdb) \a"}).drawing(), "(gdb) ") << "nobody wants to hear the bell again";
}

TEST(OtherProgressLine, ThatIsNoTextIsNotOpen) {
  EXPECT_FALSE(after({"(gdb) run\r\n\x1b[?2004l\r"}).open());
  EXPECT_EQ(after({"\x1b[?2004l"}).drawing(), "");
}

TEST(OtherProgressLine, OfMoreThanARowIsNotDrawnAgain) {
  EXPECT_EQ(after({"1234567890", "123456789"}).drawing(), "1234567890123456789");
  const OtherProgressLine row = after({"1234567890", "1234567890"});
  EXPECT_TRUE(row.open());
  EXPECT_EQ(row.drawing(), "");
  EXPECT_EQ(after({"12345678901234567890\r\n> "}).drawing(), "> ") << "the next line is another one";
  EXPECT_EQ(after({"\t\tabc"}).drawing(), "\t\tabc");
  EXPECT_EQ(after({"\t\tabcd"}).drawing(), "");
  EXPECT_EQ(after({"\xC3\xA4\xC3\xA4\xC3\xA4 1234567890 1234"}).drawing(), "\xC3\xA4\xC3\xA4\xC3\xA4 1234567890 1234");
}

TEST(OtherProgressLine, ThatMovesElsewhereOrAsksTheTerminalIsNotDrawnAgain) {
  for (const char* const sequence : {"\x1b[2J", "\x1b[H", "\x1b[6n", "\x1b[A", "\x1b]0;title\a", "\x1bM"}) {
    EXPECT_EQ(after({"> ", sequence, "x"}).drawing(), "") << sequence + 1;
    EXPECT_TRUE(after({"> ", sequence, "x"}).open());
  }
}

TEST(OtherProgressLine, IsBounded) {
  OtherProgressLine line;
  for (int i = 0; i < 10'000; ++i) line.take("\rx", kColumns);
  EXPECT_EQ(line.drawing(), "");
  line.take(std::string(1'000'000, '\x1b'), kColumns);
  line.take("\x1b[" + std::string(1'000'000, '9'), kColumns);
  EXPECT_EQ(line.drawing(), "");
}

TEST(OtherProgressLine, WhatIsLeftStaysOpenAndIsNotDrawnAgain) {
  OtherProgressLine line = after({"(gdb) "});
  line.leave();
  EXPECT_TRUE(line.open());
  EXPECT_EQ(line.drawing(), "");
  line.forget();
  EXPECT_FALSE(line.open());
}

}  // namespace
}  // namespace lrun::launcher
