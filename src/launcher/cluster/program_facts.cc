#include "cluster/program_facts.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/small_file.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kLongestLine = 256;  // Linux reads this much of a '#!' line

bool is_executable_file(const std::string& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

std::string seen_from(const std::string& folder, const std::string& path) {
  return folder.empty() || path.starts_with('/') ? path : folder + "/" + path;
}

/// The path of the program `name`; empty when no directory has it.
std::string find_on_path(const std::string& name, std::string_view path, const std::string& folder) {
  while (true) {
    const auto colon = path.find(':');
    const std::string_view directory = path.substr(0, colon);
    std::string candidate = seen_from(folder, directory.empty() ? name : std::string(directory) + "/" + name);
    if (is_executable_file(candidate)) return candidate;
    if (colon == std::string_view::npos) return {};
    path.remove_prefix(colon + 1);
  }
}

std::string first_line_of(const std::string& path) {
  std::string line = read_file_head(path, kLongestLine);
  line.resize(std::min(line.size(), line.find_first_of("\r\n")));
  return line;
}

}  // namespace

ProgramFacts look_at_program(const std::string& program, const Environment& environment, const std::string& folder) {
  const bool is_path = program.find('/') != std::string::npos;
  const std::string here = seen_from(folder, program);
  // Without PATH, execvp searches these two.
  const std::string found =
      is_path ? here : find_on_path(program, environment.get("PATH").value_or("/bin:/usr/bin"), folder);
  ProgramFacts facts;
  facts.executable = is_path ? is_executable_file(here) : !found.empty();
  facts.first_line = first_line_of(facts.executable ? found : here);
  if (facts.executable && !facts.first_line.starts_with("#!")) facts.first_line.clear();
  facts.there = facts.executable || access(here.c_str(), F_OK) == 0;
  return facts;
}

}  // namespace lrun::launcher
