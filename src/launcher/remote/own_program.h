#pragma once

#include <string>

namespace lrun::launcher {

/// Where the program of this process lies.
/// \throws std::system_error  /proc is missing.
std::string own_program_path();

/// Its bytes, for hosts that lack it.
/// \throws std::system_error  they cannot be read.
std::string own_program();

}  // namespace lrun::launcher
