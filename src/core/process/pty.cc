#include "process/pty.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace lrun::inline core {
namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

Pty open_pty() {
  Pty pty;
  pty.ours = Fd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pty.ours || ::grantpt(pty.ours.get()) != 0 || ::unlockpt(pty.ours.get()) != 0) fail("open a terminal");
  // By the descriptor and not by its name: /dev/pts may be another one where we are.
  pty.programs = Fd(::ioctl(pty.ours.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pty.programs) fail("open a terminal");
  return pty;
}

void set(const Pty& pty, const termios& settings, const winsize& size) {
  if (::tcsetattr(pty.programs.get(), TCSANOW, &settings) != 0) fail("tcsetattr");
  if (::ioctl(pty.programs.get(), TIOCSWINSZ, &size) != 0) fail("TIOCSWINSZ");
}

}  // namespace

Pty make_pty(const termios& settings, const winsize& size) {
  Pty pty = open_pty();
  set(pty, settings, size);
  return pty;
}

Pty make_pty(int columns) {
  Pty pty = open_pty();
  termios settings{};
  if (::tcgetattr(pty.programs.get(), &settings) != 0) fail("tcgetattr");
  ::cfmakeraw(&settings);
  constexpr unsigned short kLines = 24;
  set(pty, settings, {kLines, static_cast<unsigned short>(columns), 0, 0});
  return pty;
}

}  // namespace lrun::inline core
