#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "commands/find_run.h"
#include "commands/verbs.h"
#include "inspect/run_directory.h"
#include "process/exit_codes.h"
#include "report/diagnostics.h"
#include "report/runs_text.h"

namespace lrun::launcher {
namespace {

/// Reads the files of some launchers only, since large jobs are kept, too.
RunSummary summary_of(RunEntry run) {
  constexpr std::size_t kMostParts = 16;
  run.parts.resize(std::min(run.parts.size(), kMostParts));
  const auto [timeline, result] = read_run(run);
  RunSummary summary{
      .id = run.id, .name = run.name, .alive = run.alive, .result = run.alive ? "running" : result_words(result)};
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
  for (const RunEntry& run : list_runs(state)) runs.push_back(summary_of(run));
  const std::string text = request.json   ? runs_json(runs)
                           : runs.empty() ? fmt::format("no run is kept in '{}'\n", state.string())
                                          : runs_text(runs);
  return print_to_stdout(text, sink) ? 0 : kExitRefused;
}

}  // namespace lrun::launcher
