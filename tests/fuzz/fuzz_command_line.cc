// The command line: whatever words and variables come, it is a request that keeps the program's words, an answer, or a
// UserError of one line. Input: words separated by NUL; after an empty one 'NAME=value' variables.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/user_error.h"
#include "cli/parse_args.h"
#include "report/diagnostics.h"

namespace {

using lrun::Environment;
using lrun::launcher::ParsedCommandLine;

std::vector<std::string> split(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < size; ++i) {
    if (data[i] == 0) {
      words.emplace_back();
    } else {
      words.back().push_back(static_cast<char>(data[i]));
    }
  }
  return words;
}

lrun::launcher::FileText no_files(const std::string& /*path*/) { return {ENOENT, {}}; }

/// The command is the end of the line, but for the one '--' that torchrun drops behind the script.
bool is_end_of(const std::vector<std::string>& command, const std::vector<std::string>& argv) {
  if (command.empty() || command.size() >= argv.size()) return false;
  if (std::equal(command.rbegin(), command.rend(), argv.rbegin())) return true;
  std::vector<std::string> with_double_dash = command;
  with_double_dash.insert(with_double_dash.begin() + 1, "--");
  return with_double_dash.size() < argv.size() &&
         std::equal(with_double_dash.rbegin(), with_double_dash.rend(), argv.rbegin());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::string> words = split(data, size);
  const auto border = std::find(words.begin(), words.end(), "");
  std::vector<std::string> argv(words.begin(), border);
  const std::array names{"lrun", "torchrun", "horovodrun"};
  argv.insert(argv.begin(), names[size % names.size()]);
  Environment environment;
  for (auto word = border; word != words.end(); ++word) {
    const std::size_t equals = word->find('=');
    if (equals != std::string::npos) environment.set(word->substr(0, equals), word->substr(equals + 1));
  }
  try {
    const ParsedCommandLine parsed = lrun::launcher::parse_command_line(argv, environment, no_files);
    if (parsed.action == ParsedCommandLine::Action::kLaunch && !is_end_of(parsed.request.command, argv)) std::abort();
  } catch (const lrun::UserError& error) {
    const std::string lines = lrun::launcher::render(error, false);
    const auto expected = error.hint().empty() ? 1 : 2;
    if (std::count(lines.begin(), lines.end(), '\n') != expected) std::abort();
  }
  return 0;
}
