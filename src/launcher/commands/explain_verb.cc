// In: a run that has ended, or runs, or waits. Out: its explanation on stdout. run_verb() calls it.
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/small_file.h"
#include "commands/find_run.h"
#include "commands/verbs.h"
#include "inspect/run_directory.h"
#include "process/exit_codes.h"
#include "report/diagnostics.h"
#include "report/explanation.h"
#include "report/result_json.h"

namespace lrun::launcher {
namespace {

/// The file with the culprit's last words, and their line, where it can be read from here.
void find_log(const FailureRecord& culprit, KnownOfRun& known) {
  constexpr std::size_t kMostLogBytes = std::size_t{64} * 1024 * 1024;
  if (culprit.logs.empty()) return;
  for (const char* name : {"stderr.log", "stdout.log"}) {
    const std::filesystem::path file = std::filesystem::path(culprit.logs) / name;
    const std::optional<std::string> log = read_small_file(file, kMostLogBytes);
    if (!log) continue;
    const int line = culprit.evidence.empty() ? 0 : last_line_with(*log, culprit.evidence.back());
    if (known.log.empty() || line > 0) known.log = file.string();
    known.log_line = line;
    if (line > 0) return;
  }
}

void ask_for_statuses(const RunEntry& run, KnownOfRun& known) {
  std::vector<LivingLauncher> launchers = ask_launchers(run);
  known.statuses = ask_others(launchers);
  for (LivingLauncher& launcher : launchers) {
    if (launcher.status) known.statuses.push_back(*std::move(launcher.status));
  }
}

}  // namespace

int explain_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink) {
  const RunEntry run = run_named(request.run, state_folder(environment));
  KnownOfRun known{.id = run.id, .alive = run.alive, .now_ms = wall_ms()};
  if (!run.waits) {
    RunFiles files = read_run(run);
    known.timeline = std::move(files.timeline);
    known.result_json = std::move(files.result);
  }
  if (run.alive) ask_for_statuses(run, known);
  const std::optional<FailureRecord> culprit =
      known.result_json ? culprit_in(*known.result_json) : std::optional<FailureRecord>();
  if (culprit) find_log(*culprit, known);
  const Explanation explanation = explanation_of(known);
  const std::string text = request.json ? explanation_json(explanation) : explanation_text(explanation);
  return print_to_stdout(text, sink) ? 0 : kExitRefused;
}

}  // namespace lrun::launcher
