#include "plan/debugger.h"

#include <algorithm>

#include "plan/python_program.h"

namespace lrun::launcher {

std::vector<std::string> below_debugger(std::vector<std::string> program) {
  if (is_python(program.front())) {
    // Python's options come before the script. pdb runs a script or '-m MODULE', but not '-c TEXT'.
    const auto what = std::find_if(program.begin() + 1, program.end(), [](const std::string& word) {
      return !word.starts_with('-') || word == "-m" || word == "-c";
    });
    if (what != program.end() && *what != "-c") {
      program.insert(what, {"-m", "pdb"});
      return program;
    }
  }
  program.insert(program.begin(), {"gdb", "-q", "--args"});
  return program;
}

}  // namespace lrun::launcher
