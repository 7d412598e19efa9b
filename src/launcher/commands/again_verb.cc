// In: the name of a run that is kept. Out: lrun as it was typed then, in its folder, or that line. run_verb() calls it.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/nearest.h"
#include "base/shell_words.h"
#include "base/user_error.h"
#include "cluster/detect.h"
#include "cluster/mpi_job.h"
#include "cluster/slurm.h"
#include "commands/find_run.h"
#include "commands/verbs.h"
#include "inspect/run_directory.h"
#include "process/exit_codes.h"
#include "remote/ssh.h"
#include "report/diagnostics.h"
#include "report/status_text.h"

namespace lrun::launcher {
namespace {

/// The folder of a run is this user's own: what it names is executed. (A shared place of runs may hold those of
/// others.)
void require_own(const RunEntry& run) {
  std::vector<std::filesystem::path> paths{run.folder};
  for (const std::filesystem::path& part : run.parts) paths.insert(paths.end(), {part, part / "events.jsonl"});
  for (const std::filesystem::path& path : paths) {
    struct stat status {};
    const bool is_own = ::lstat(path.c_str(), &status) == 0 && status.st_uid == ::geteuid() &&
                        (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    if (!is_own) {
      throw UserError(fmt::format("'{}' is not your own, or others may write to it", path.string()),
                      "'lrun report " + run.id + "' shows what its workers ran");
    }
  }
}

bool is_one_of_tasks(const Environment& environment) {
  return is_later_mpi_task(environment) || tasks_of_step(environment) > 1;
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
  if (run.waits) {
    throw UserError("run '" + run.id + "' has not begun: its command line is not kept yet",
                    "'lrun status' says for what it waits; 'lrun runs' lists those before it");
  }
  require_own(run);
  const Timeline timeline = timeline_of(run);
  const bool from_another_host = !timeline.command_line.empty() && timeline.command_line.back() == kNodeWord;
  if (timeline.command_line_bytes > 0) {
    throw UserError(fmt::format("the command line of run '{}' was too long to be kept: {} bytes", run.id,
                                timeline.command_line_bytes),
                    "'lrun report " + run.id + "' shows how it began");
  }
  if (timeline.command_line.empty() || from_another_host) {
    throw UserError("run '" + run.id + "' has no command line of this host",
                    "'lrun report " + run.id + "' shows what its workers ran");
  }
  if (has_launcher_for_each_rank(run) && !is_one_of_tasks(environment) && !request.dry_run) {
    throw UserError(
        fmt::format("each of the {} of run '{}' had an lrun of its own, and this would be one rank",
                    counted(static_cast<std::size_t>(timeline.world_size), "rank"), run.id),
        fmt::format("write 'mpirun -np {} lrun again {}', or the same with srun", timeline.world_size, run.id));
  }
  const std::string change_folder = shell_line({"cd", timeline.folder}) + " && ";
  if (request.dry_run) {
    return print_to_stdout(change_folder + shell_line(timeline.command_line) + "\n", sink) ? 0 : kExitRefused;
  }
  constexpr std::size_t kMostBytesShown = 4096;
  if (!is_later_task(environment)) {
    sink.note("again: " + command_text({"cd", timeline.folder}, kMostBytesShown) + " && " +
              command_text(timeline.command_line, kMostBytesShown));
  }
  execute_again(timeline);
}

}  // namespace lrun::launcher
