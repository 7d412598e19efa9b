#include "process/pty.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace lrun {
namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

Pty make_pty(int columns) {
  Pty pty;
  pty.ours = Fd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pty.ours || ::grantpt(pty.ours.get()) != 0 || ::unlockpt(pty.ours.get()) != 0) fail("open a terminal");
  // By the descriptor and not by its name: /dev/pts may be another one where we are.
  pty.programs = Fd(::ioctl(pty.ours.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pty.programs) fail("open a terminal");
  termios settings{};
  if (::tcgetattr(pty.programs.get(), &settings) != 0) fail("tcgetattr");
  ::cfmakeraw(&settings);
  if (::tcsetattr(pty.programs.get(), TCSANOW, &settings) != 0) fail("tcsetattr");
  constexpr unsigned short kLines = 24;
  const winsize size{kLines, static_cast<unsigned short>(columns), 0, 0};
  if (::ioctl(pty.programs.get(), TIOCSWINSZ, &size) != 0) fail("TIOCSWINSZ");
  return pty;
}

}  // namespace lrun
