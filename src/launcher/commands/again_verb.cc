#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "base/user_error.h"
#include "commands/find_run.h"
#include "commands/verbs.h"
#include "inspect/run_directory.h"
#include "process/exit_codes.h"
#include "remote/ssh.h"
#include "report/diagnostics.h"
#include "report/status_text.h"

namespace lrun::launcher {
namespace {

/// For a shell, on one line.
std::string line_of(const Timeline& timeline) {
  constexpr std::size_t kMostBytes = 4096;
  return "cd " + command_text({timeline.folder}, kMostBytes) + " && " + command_text(timeline.command_line, kMostBytes);
}

/// Becomes the lrun that the run was. \throws UserError  it cannot be executed.
[[noreturn]] void execute_again(const Timeline& timeline) {
  if (::chdir(timeline.folder.c_str()) != 0) {
    throw UserError(fmt::format("cannot go to '{}': {}", timeline.folder, std::strerror(errno)),
                    "the run was started there; 'lrun again --dry-run' shows its command line");
  }
  std::vector<std::string> words = timeline.command_line;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv.front(), argv.data());
  throw UserError(fmt::format("cannot execute '{}': {}", words.front(), std::strerror(errno)),
                  "the run was started by a program of that name");
}

}  // namespace

int again_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink) {
  const RunEntry run = run_named(request.run, state_folder(environment));
  const Timeline timeline = timeline_of(run);
  const bool from_another_host = !timeline.command_line.empty() && timeline.command_line.back() == kNodeWord;
  if (timeline.command_line.empty() || from_another_host) {
    throw UserError("run '" + run.id + "' has no command line of this host",
                    "'lrun report " + run.id + "' shows what its workers ran");
  }
  const std::string line = line_of(timeline);
  if (request.dry_run) return print_to_stdout(line + "\n", sink) ? 0 : kExitRefused;
  sink.note("again: " + line);
  execute_again(timeline);
}

}  // namespace lrun::launcher
