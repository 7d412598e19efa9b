#include "report/diagnostics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "base/fd.h"
#include "run/verbose_log.h"

namespace lrun::launcher {
namespace {

TEST(Diagnostics, ALineSaysWhoAndHowBad) {
  EXPECT_EQ(message_line(Severity::kError, "x", false), "lrun: error: x\n");
  EXPECT_EQ(message_line(Severity::kWarning, "x", false), "lrun: warning: x\n");
  EXPECT_EQ(message_line(Severity::kNote, "x", false), "lrun: note: x\n");
  EXPECT_EQ(message_line(Severity::kHint, "x", false), "lrun: hint: x\n");
  EXPECT_EQ(message_line(Severity::kError, "x", true), "lrun: \x1b[1;31merror: \x1b[0mx\n");
}

TEST(Diagnostics, AUsersTextCannotForgeLinesOrMoveTheCursor) {
  EXPECT_EQ(message_line(Severity::kError, "a\nlrun: note: b\x1b[2J\x7f\tä", false),
            "lrun: error: a\\nlrun: note: b\\x1b[2J\\x7f\\x09ä\n");
}

TEST(Diagnostics, AUsersTextCannotActOnTheTerminalInUtf8Either) {
  const std::string text =
      "\xC2\x9B"
      "31m \xE2\x80\xAE \xE2\x80\xA8 \x9B \xE2\x82 \xE2\x82\xAC";
  EXPECT_EQ(message_line(Severity::kError, text, false),
            "lrun: error: \\x9b31m \\u202e \\u2028 \\x9b \\xe2\\x82 \xE2\x82\xAC\n");
}

TEST(Diagnostics, AnErrorIsFollowedByItsHint) {
  EXPECT_EQ(render(UserError("bad", "do that"), false), "lrun: error: bad\nlrun: hint: do that\n");
}

TEST(Diagnostics, APipeTakesNoColour) {
  const Pipe pipe = make_pipe();
  EXPECT_FALSE(takes_colour(pipe.write.get()));
}

/// Runs `body` with stderr going to a pipe.
/// \return what came out.
template <class Body>
std::string stderr_of(Body body) {
  Pipe pipe = make_pipe();
  const Fd saved(::dup(STDERR_FILENO));
  ::dup2(pipe.write.get(), STDERR_FILENO);
  body();
  ::dup2(saved.get(), STDERR_FILENO);
  pipe.write.reset();
  std::string text(4096, '\0');
  const ssize_t length = ::read(pipe.read.get(), text.data(), text.size());
  text.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  return text;
}

TEST(Diagnostics, SayGoesToStderr) {
  EXPECT_EQ(stderr_of([] { say(UserError("bad", "do that")); }), "lrun: error: bad\nlrun: hint: do that\n");
  EXPECT_EQ(stderr_of([] { say(Severity::kWarning, "careful"); }), "lrun: warning: careful\n");
}

TEST(VerboseLog, SpeaksOnlyWhenAsked) {
  std::string lines;
  const auto write = [&](const std::string& line) { lines += line; };
  const VerboseLog silent(0, write);
  silent.info("a");
  silent.debug("b");
  EXPECT_EQ(lines, "");
  const VerboseLog once(1, write);
  once.info("{a}");
  once.debug("b");
  EXPECT_TRUE(lines.starts_with("lrun: info: ") && lines.ends_with(": {a}\n")) << lines;
  lines.clear();
  VerboseLog(2, write).debug("b");
  EXPECT_TRUE(lines.starts_with("lrun: debug: ") && lines.ends_with(": b\n")) << lines;
}

}  // namespace
}  // namespace lrun::launcher
