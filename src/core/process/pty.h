#pragma once

#include <sys/ioctl.h>
#include <termios.h>

#include "base/fd.h"

namespace lrun::inline core {

/// A terminal for a program that is to believe it has one, with the program's end and ours.
struct Pty {
  Fd ours;  ///< reads what the program writes; EIO when no process has the other end open any more
  Fd programs;
};

/// Makes one with these settings. Both ends are CLOEXEC, and it is no process's controlling terminal.
/// \throws std::system_error  there are no more terminals or descriptors.
Pty make_pty(const termios& settings, const winsize& size);

/// One of 24 lines and the given columns that changes no byte, echoes nothing and sends no signal.
/// \throws std::system_error  as above.
Pty make_pty(int columns);

}  // namespace lrun::inline core
