#include "process/pty.h"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace lrun {
namespace {

std::string read_from(const Fd& fd) {
  char buffer[256];
  const ssize_t count = ::read(fd.get(), buffer, sizeof(buffer));
  return count > 0 ? std::string(buffer, static_cast<std::size_t>(count)) : std::string();
}

TEST(Pty, IsATerminalThatChangesNothing) {
  const Pty pty = make_pty(123);
  EXPECT_EQ(::isatty(pty.programs.get()), 1);
  winsize size{};
  ASSERT_EQ(::ioctl(pty.programs.get(), TIOCGWINSZ, &size), 0);
  EXPECT_EQ(size.ws_col, 123);
  ASSERT_EQ(::write(pty.programs.get(), "a\n\x03\t\r\n", 6), 6);
  EXPECT_EQ(read_from(pty.ours), "a\n\x03\t\r\n");
}

TEST(Pty, ItsEndIsSeenAfterWhatWasWritten) {
  Pty pty = make_pty(80);
  ASSERT_EQ(::write(pty.programs.get(), "last", 4), 4);
  pty.programs.reset();
  EXPECT_EQ(read_from(pty.ours), "last");
  EXPECT_EQ(read_from(pty.ours), "");
  EXPECT_EQ(errno, EIO);
}

}  // namespace
}  // namespace lrun
