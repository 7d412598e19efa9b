#pragma once

#include "base/fd.h"

namespace lrun {

/// A terminal for a program that is to believe it has one, with the program's end and ours.
struct Pty {
  Fd ours;      ///< what is written to the other end is read here; EIO when nobody has that open any more
  Fd programs;  ///< changes no byte, echoes nothing, sends no signal
};

/// Makes one of 24 lines and the given columns. Both ends are CLOEXEC and nobody's controlling terminal.
/// \throws std::system_error  there are no more terminals or descriptors.
Pty make_pty(int columns);

}  // namespace lrun
