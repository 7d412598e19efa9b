#include <fmt/format.h>

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/nearest.h"
#include "base/shortened.h"
#include "commands/find_run.h"
#include "commands/verbs.h"
#include "inspect/gpu_use.h"
#include "inspect/run_directory.h"
#include "process/descendants.h"
#include "process/exit_codes.h"
#include "report/diagnostics.h"
#include "report/status_text.h"

namespace lrun::launcher {
namespace {

constexpr Duration kGpuLimit(2000);
constexpr std::size_t kMostNamesBytes = 120;

std::int64_t now_ms() {
  return std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch()).count();
}

struct Answers {
  std::vector<RunStatus> statuses;
  std::set<std::string> silent;                               ///< ids of runs
  std::map<std::string, std::vector<std::string>> elsewhere;  ///< the parts of runs that are on other hosts
};

void ask(const RunEntry& run, Answers& answers) {
  for (LivingLauncher& launcher : ask_launchers(run)) {
    if (launcher.status) {
      answers.statuses.push_back(*std::move(launcher.status));
    } else if (launcher.is_elsewhere) {
      answers.elsewhere[run.id].push_back(launcher.folder.filename().string());
    } else if (!is_stale(launcher.folder)) {  // else it has ended since
      answers.silent.insert(run.id);
    }
  }
}

/// Adds what the driver says about the ranks' processes.
void add_gpus(std::vector<RunStatus>& runs) {
  if (runs.empty()) return;
  const std::vector<ProcessOnGpu> processes = read_gpu_use(kGpuLimit);
  for (RunStatus& run : runs) add_gpu_use(run, processes, parent_of);
}

}  // namespace

int status_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink) {
  const std::filesystem::path state = state_folder(environment);
  Answers answers;
  for (const RunEntry& run : living_runs(request.run, state)) ask(run, answers);
  add_gpus(answers.statuses);
  std::string text;
  for (const RunStatus& status : answers.statuses) text += status_text(status, now_ms());
  const bool some_live = !text.empty() || !answers.silent.empty() || !answers.elsewhere.empty();
  if (!some_live) text = fmt::format("no run is alive in '{}'\n", state.string());
  const bool printed =
      print_to_stdout(request.json ? status_json(answers.statuses, answers.silent, answers.elsewhere) : text, sink);
  for (const std::string& id : answers.silent) {
    sink.error(fmt::format("run '{}' is alive and does not answer: a launcher of it hangs, starts or ends", id));
  }
  for (const auto& [id, parts] : answers.elsewhere) {
    sink.note(fmt::format("run '{}' has {} on other hosts, where 'lrun status' shows them: {}", id,
                          counted(parts.size(), "launcher"), shortened(join_words(parts, ", "), kMostNamesBytes)));
  }
  return printed && answers.silent.empty() ? 0 : kExitRefused;
}

}  // namespace lrun::launcher
