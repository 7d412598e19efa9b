#include "plan/python_program.h"

#include "base/split.h"
#include "plan/personality.h"

namespace lrun::launcher {

std::string python_of(const Environment& environment) { return environment.get("PYTHON_EXEC").value_or("python3"); }

bool is_python(std::string_view program) {
  program.remove_prefix(program.rfind('/') + 1);
  for (const std::string_view name : {"python", "pypy"}) {
    if (!program.starts_with(name)) continue;
    const std::string_view version = program.substr(name.size());
    return version.empty() || (version.front() >= '0' && version.front() <= '9');
  }
  return false;
}

bool names_python(std::string_view first_line) {
  if (!first_line.starts_with("#!")) return false;
  std::string_view rest = trimmed(first_line.substr(2));
  std::string_view word = cut(rest, ' ');
  const bool is_env = word.substr(word.rfind('/') + 1) == "env";
  const auto is_for_env = [](std::string_view text) {
    return text.empty() || text.starts_with('-') || text.find('=') != std::string_view::npos;
  };
  if (is_env) word = cut(rest, ' ');
  while (is_env && is_for_env(word) && !rest.empty()) word = cut(rest, ' ');
  return is_python(word);
}

bool is_given_to_python(const LaunchRequest& request, const ProgramFacts& program) {
  if (request.run_path) return true;
  if (request.no_python) return false;
  if (request.module || personality_of(request.compat).every_program_is_python) return true;
  return request.command.front().ends_with(".py") || (!program.executable && names_python(program.first_line));
}

bool is_python_program(const LaunchRequest& request, const ProgramFacts& program) {
  return is_given_to_python(request, program) || is_python(request.command.front()) || names_python(program.first_line);
}

}  // namespace lrun::launcher
