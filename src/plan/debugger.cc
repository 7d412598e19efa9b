#include "plan/debugger.h"

#include <algorithm>
#include <string_view>

namespace lrun {

std::vector<std::string> below_debugger(std::vector<std::string> program) {
  const std::string_view name = std::string_view(program.front()).substr(program.front().rfind('/') + 1);
  if (name.starts_with("python")) {
    // What Python runs comes after its options; '-m MODULE' is something that pdb runs as well, '-c TEXT' is not.
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

}  // namespace lrun
