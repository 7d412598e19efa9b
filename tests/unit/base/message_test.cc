#include "base/message.h"

#include <gtest/gtest.h>

#include "base/fd.h"

namespace lrun {
namespace {

TEST(MessageLine, ALineSaysWhoAndHowBad) {
  EXPECT_EQ(message_line(Severity::kError, "x", false), "lrun: error: x\n");
  EXPECT_EQ(message_line(Severity::kWarning, "x", false), "lrun: warning: x\n");
  EXPECT_EQ(message_line(Severity::kNote, "x", false), "lrun: note: x\n");
  EXPECT_EQ(message_line(Severity::kHint, "x", false), "lrun: hint: x\n");
  EXPECT_EQ(message_line(Severity::kError, "x", true), "lrun: \x1b[1;31merror: \x1b[0mx\n");
}

TEST(MessageLine, AUsersTextCannotForgeLinesOrMoveTheCursor) {
  EXPECT_EQ(message_line(Severity::kError, "a\nlrun: note: b\x1b[2J\x7f\tä", false),
            "lrun: error: a\\nlrun: note: b\\x1b[2J\\x7f\\x09ä\n");
}

TEST(MessageLine, AUsersTextCannotActOnTheTerminalInUtf8Either) {
  const std::string text =
      "\xC2\x9B"
      "31m \xE2\x80\xAE \xE2\x80\xA8 \x9B \xE2\x82 \xE2\x82\xAC";
  EXPECT_EQ(message_line(Severity::kError, text, false),
            "lrun: error: \\x9b31m \\u202e \\u2028 \\x9b \\xe2\\x82 \xE2\x82\xAC\n");
}

TEST(TakesColour, IsFalseOfAPipe) {
  const Pipe pipe = make_pipe();
  EXPECT_FALSE(takes_colour(pipe.write.get()));
}

}  // namespace
}  // namespace lrun
