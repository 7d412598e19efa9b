#pragma once

#include <string>
#include <vector>

namespace lrun::launcher {

/// The command that runs a program below its debugger: 'python3 -u x.py' becomes 'python3 -u -m pdb x.py', and anything
/// else runs below gdb.
/// \param program  not empty
std::vector<std::string> below_debugger(std::vector<std::string> program);

}  // namespace lrun::launcher
