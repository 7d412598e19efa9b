#include "logs/foreign_line.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

constexpr int kColumns = 20;

ForeignLine after(std::initializer_list<std::string_view> pieces) {
  ForeignLine line;
  for (const std::string_view piece : pieces) line.take(piece, kColumns);
  return line;
}

TEST(ForeignLine, IsWhatStandsBehindTheLastNewline) {
  EXPECT_FALSE(after({"a line\r\n"}).open());
  const ForeignLine prompt = after({"a line\r\n(gd", "b) "});
  EXPECT_TRUE(prompt.open());
  EXPECT_EQ(prompt.drawing(), "(gdb) ");
  EXPECT_FALSE(after({"(gdb) run\r\n"}).open());
}

TEST(ForeignLine, IsDrawnAgainAsItWasEdited) {
  EXPECT_EQ(after({"\x1b[?2004h(gdb) ", "bt", "\b\x1b[K", "\x1b[1mr\x1b[0m"}).drawing(),
            "\x1b[?2004h(gdb) bt\b\x1b[K\x1b[1mr\x1b[0m");
  EXPECT_EQ(after({"(gdb) ab", "\x1b", "[", "2", "D"}).drawing(), "(gdb) ab\x1b[2D") << "a sequence in pieces";
  EXPECT_EQ(after({"(gdb) \a"}).drawing(), "(gdb) ") << "nobody wants to hear the bell again";
}

TEST(ForeignLine, ThatIsNoTextIsNotOpen) {
  EXPECT_FALSE(after({"(gdb) run\r\n\x1b[?2004l\r"}).open());
  EXPECT_EQ(after({"\x1b[?2004l"}).drawing(), "");
}

TEST(ForeignLine, OfMoreThanARowIsNotDrawnAgain) {
  EXPECT_EQ(after({"1234567890", "123456789"}).drawing(), "1234567890123456789");
  const ForeignLine row = after({"1234567890", "1234567890"});
  EXPECT_TRUE(row.open());
  EXPECT_EQ(row.drawing(), "");
  EXPECT_EQ(after({"12345678901234567890\r\n> "}).drawing(), "> ") << "the next line is another one";
  EXPECT_EQ(after({"\t\tabc"}).drawing(), "\t\tabc");
  EXPECT_EQ(after({"\t\tabcd"}).drawing(), "");
  EXPECT_EQ(after({"\xC3\xA4\xC3\xA4\xC3\xA4 1234567890 1234"}).drawing(), "\xC3\xA4\xC3\xA4\xC3\xA4 1234567890 1234");
}

TEST(ForeignLine, ThatMovesElsewhereOrAsksTheTerminalIsNotDrawnAgain) {
  for (const char* const sequence : {"\x1b[2J", "\x1b[H", "\x1b[6n", "\x1b[A", "\x1b]0;title\a", "\x1bM"}) {
    EXPECT_EQ(after({"> ", sequence, "x"}).drawing(), "") << sequence + 1;
    EXPECT_TRUE(after({"> ", sequence, "x"}).open());
  }
}

TEST(ForeignLine, IsBounded) {
  ForeignLine line;
  for (int i = 0; i < 10'000; ++i) line.take("\rx", kColumns);
  EXPECT_EQ(line.drawing(), "");
  line.take(std::string(1'000'000, '\x1b'), kColumns);
  line.take("\x1b[" + std::string(1'000'000, '9'), kColumns);
  EXPECT_EQ(line.drawing(), "");
}

TEST(ForeignLine, WhatIsLeftStaysOpenAndIsNotDrawnAgain) {
  ForeignLine line = after({"(gdb) "});
  line.leave();
  EXPECT_TRUE(line.open());
  EXPECT_EQ(line.drawing(), "");
  line.forget();
  EXPECT_FALSE(line.open());
}

}  // namespace
}  // namespace lrun::launcher
