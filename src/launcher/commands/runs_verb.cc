#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/console_descriptor.h"
#include "base/shortened.h"
#include "commands/find_run.h"
#include "commands/verbs.h"
#include "inspect/run_directory.h"
#include "process/exit_codes.h"
#include "report/diagnostics.h"
#include "report/runs_text.h"

namespace lrun::launcher {
namespace {

/// As its head says, or else the first launcher of it that answers.
RunSummary summary_of_waiting(const RunEntry& run) {
  RunSummary summary{.id = run.id, .name = run.name, .alive = true, .result = "waiting", .job = run.job()};
  for (const LivingLauncher& launcher : ask_launchers(run)) {
    const bool is_known = summary.started_ms != 0;
    if (!launcher.status || (is_known && launcher.status->hosts.empty())) continue;
    summary.started_ms = launcher.status->started_ms;
    summary.took_ms = launcher.status->running_ms;
    summary.world_size = launcher.status->world_size;
    summary.argv = launcher.status->argv;
    constexpr std::size_t kMostColumns = 40;
    summary.result = launcher.status->hosts.empty() ? "waiting for other nodes"
                                                    : shortened(launcher.status->waits_for, kMostColumns);
  }
  return summary;
}

/// Reads the files of some launchers only, since large jobs are kept, too.
RunSummary summary_of(RunEntry run) {
  if (run.waits) return summary_of_waiting(run);
  constexpr std::size_t kMostParts = 16;
  run.parts.resize(std::min(run.parts.size(), kMostParts));
  const auto [timeline, result] = read_run(run);
  RunSummary summary{.id = run.id,
                     .name = run.name,
                     .alive = run.alive,
                     .result = run.alive ? "running" : result_words(result),
                     .job = run.job()};
  if (!timeline) return summary;
  summary.started_ms = timeline->started_ms;
  summary.took_ms = (run.alive ? wall_ms() : timeline->last_ms()) - timeline->started_ms;
  summary.world_size = timeline->world_size;
  summary.argv = timeline->argv;
  return summary;
}

}  // namespace

int runs_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink) {
  const std::filesystem::path state = state_folder(environment);
  std::vector<RunSummary> runs;
  for (const RunEntry& run : list_all(state)) runs.push_back(summary_of(run));
  const ConsoleDescriptor out(STDOUT_FILENO);
  const std::string text = request.json   ? runs_json(runs)
                           : runs.empty() ? fmt::format("no run is kept in '{}'\n", state.string())
                                          : runs_text(runs, out.terminal() ? out.size().columns : 0);
  return print_to_stdout(text, sink) ? 0 : kExitRefused;
}

}  // namespace lrun::launcher
