#pragma once

#include <string>

namespace lrun::launcher {

/// The answer to --version. Line 1 is 'lrun 0.2.0' and stays so: scripts read it. Further lines tell this build: the
/// commit where it is known, the compiler, and the oldest glibc that the program was made for.
std::string version_text();

}  // namespace lrun::launcher
