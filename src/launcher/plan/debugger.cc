#include "plan/debugger.h"

#include "plan/python_program.h"

namespace lrun::launcher {

std::vector<std::string> below_debugger(std::vector<std::string> program) {
  if (is_python(program.front())) {
    // pdb runs a script or '-m MODULE', but not '-c TEXT'.
    const PythonCommand parts = parts_of_python(program);
    const bool has_file = !parts.program.empty() && parts.program.front() != "-c";
    if (has_file) return in_place_of_python({program.front(), "-m", "pdb"}, program);
  }
  program.insert(program.begin(), {"gdb", "-q", "--args"});
  return program;
}

}  // namespace lrun::launcher
