#include "report/diagnostics.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/fd.h"
#include "support/recording_sink.h"

namespace lrun::launcher {
namespace {

TEST(Render, AnErrorIsFollowedByItsHint) {
  EXPECT_EQ(render(UserError("bad", "do that"), false), "lrun: error: bad\nlrun: hint: do that\n");
  EXPECT_EQ(render(UserError("bad", ""), false), "lrun: error: bad\n");
}

TEST(PrintToStdout, AFullStdoutIsOneError) {
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full);
  const Fd saved(::dup(STDOUT_FILENO));
  ::dup2(full.get(), STDOUT_FILENO);
  RecordingSink sink;
  const bool printed = print_to_stdout("text\n", sink);
  ::dup2(saved.get(), STDOUT_FILENO);
  EXPECT_FALSE(printed);
  EXPECT_EQ(sink.text(), "lrun: error: cannot write to standard output: No space left on device\n");
}

TEST(WaitWhileStdoutIsRead, EndsWithTheReader) {
  int ends[2] = {};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Fd reader(ends[0]);
  const Fd writer(ends[1]);
  const Fd saved(::dup(STDOUT_FILENO));
  ::dup2(writer.get(), STDOUT_FILENO);
  const bool while_read = wait_while_stdout_is_read(Duration(1));
  reader.reset();
  constexpr Duration kLongerThanATest(3'600'000);
  const bool when_not = wait_while_stdout_is_read(kLongerThanATest);
  ::dup2(saved.get(), STDOUT_FILENO);
  EXPECT_TRUE(while_read);
  EXPECT_FALSE(when_not);
}

}  // namespace
}  // namespace lrun::launcher
