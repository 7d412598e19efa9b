#include "base/shell_words.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

using Words = std::vector<std::string>;

TEST(ShellWords, AreSeparatedByBlanks) {
  EXPECT_EQ(split_shell_words("nsys  profile\t-o\nout"), (Words{"nsys", "profile", "-o", "out"}));
  EXPECT_EQ(split_shell_words("  "), Words{});
}

TEST(ShellWords, AreKeptTogetherByQuotes) {
  EXPECT_EQ(split_shell_words("a 'b  c'\"d e\" f"), (Words{"a", "b  cd e", "f"}));
  EXPECT_EQ(split_shell_words("'' \"\""), (Words{"", ""}));
  EXPECT_EQ(split_shell_words("'a\\'b"), (Words{"a\\b"})) << "in single quotes a backslash is itself";
}

TEST(ShellWords, ABackslashProtectsWhatAShellProtects) {
  EXPECT_EQ(split_shell_words("a\\ b \\'"), (Words{"a b", "'"}));
  EXPECT_EQ(split_shell_words("\"\\\"\\\\\\$\\n\""), (Words{"\"\\$\\n"}));
  EXPECT_EQ(split_shell_words("a\\\nb"), (Words{"ab"}));
}

TEST(ShellWords, AreNotExpanded) { EXPECT_EQ(split_shell_words("$HOME * ~ #a"), (Words{"$HOME", "*", "~", "#a"})); }

TEST(ShellWords, ThatAreNotWholeAreNone) {
  for (const char* const text : {"'a", "\"a", "a\\", "\"a\\\""})
    EXPECT_EQ(split_shell_words(text), std::nullopt) << text;
}

TEST(ShellWords, QuotedAreOneWord) {
  EXPECT_EQ(quoted_for_shell("it's"), "'it'\\''s'");
  EXPECT_EQ(split_shell_words(quoted_for_shell("/my run/it's $1")), (Words{"/my run/it's $1"}));
}

TEST(ShellWords, InALineAreInQuotesWhereAShellNeedsThem) {
  EXPECT_EQ(shell_line({"./train", "--lr=1e-3", "a b", "", "~", "*.py"}), "./train --lr=1e-3 'a b' '' '~' '*.py'");
  const Words words{"sh", "-c", "it's \"$0\"\n\t\\ `ls` ! #"};
  EXPECT_EQ(split_shell_words(shell_line(words)), words);
}

}  // namespace
}  // namespace lrun
