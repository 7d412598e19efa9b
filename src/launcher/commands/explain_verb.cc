// In: a run that has ended, or runs, or waits. Out: its explanation on stdout. run_verb() calls it.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "commands/find_run.h"
#include "commands/verbs.h"
#include "inspect/run_directory.h"
#include "process/exit_codes.h"
#include "remote/ssh.h"
#include "report/diagnostics.h"
#include "report/explanation.h"
#include "report/result_json.h"

namespace lrun::launcher {
namespace {

/// The last bytes of a log file, and whether they are all. (A pipe there would make us wait.)
struct LogEnd {
  std::string bytes;
  bool is_whole = false;
};
LogEnd end_of_log(const std::filesystem::path& path) {
  constexpr std::uintmax_t kMostBytes = std::uintmax_t{64} << 20U;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return {};
  LogEnd end{std::string(std::min(size, kMostBytes), '\0'), size <= kMostBytes};
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(size - end.bytes.size()));
  file.read(end.bytes.data(), static_cast<std::streamsize>(end.bytes.size()));
  end.bytes.resize(static_cast<std::size_t>(file.gcount()));
  return end;
}

/// The file with the culprit's last words where it can be read from here, and their line unless it is a long one.
void find_log(const FailureRecord& culprit, KnownOfRun& known) {
  if (culprit.logs.empty()) return;
  for (const char* name : {"stderr.log", "stdout.log"}) {
    const std::filesystem::path file = std::filesystem::path(culprit.logs) / name;
    const LogEnd end = end_of_log(file);
    if (end.bytes.empty()) continue;
    const int line = culprit.evidence.empty() ? 0 : last_line_with(end.bytes, culprit.evidence.back());
    if (known.log.empty() || line > 0) known.log = file.string();
    known.log_line = end.is_whole ? line : 0;
    if (line > 0) return;
  }
}

/// As again_verb() has it.
bool can_repeat(const RunEntry& run, const std::optional<Timeline>& timeline) {
  if (!timeline || timeline->command_line.empty() || has_launcher_for_each_rank(run)) return false;
  return timeline->command_line.back() != kNodeWord;
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
    known.can_repeat = can_repeat(run, known.timeline);
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
