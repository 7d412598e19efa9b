#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "commands/find_run.h"
#include "commands/verbs.h"
#include "inspect/control_client.h"
#include "inspect/gpu_use.h"
#include "inspect/run_directory.h"
#include "process/descendants.h"
#include "process/exit_codes.h"
#include "report/diagnostics.h"
#include "report/status_text.h"

namespace lrun::launcher {
namespace {

constexpr Duration kStatusLimit(2000);

std::int64_t now_ms() {
  return std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Adds what the driver says about the ranks' processes.
void add_gpus(std::vector<RunStatus>& runs) {
  if (runs.empty()) return;
  const std::vector<ProcessOnGpu> processes = read_gpu_use(kStatusLimit);
  for (RunStatus& run : runs) add_gpu_use(run, processes, parent_of);
}

}  // namespace

int status_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink) {
  const std::filesystem::path state = state_folder(environment);
  std::vector<RunStatus> answered;
  std::vector<std::string> silent;
  for (const RunEntry& run : living_runs(request.run, state)) {
    const ControlAnswer answer = ask_run(run.folder, "status", kStatusLimit);
    std::optional<RunStatus> status = run_status_from_json(answer.text);
    if (status) {
      answered.push_back(std::move(*status));
    } else if (!is_stale(run.folder)) {  // else it has ended since it was listed
      silent.push_back(run.id);
    }
  }
  add_gpus(answered);
  std::string text;
  for (const RunStatus& status : answered) text += status_text(status, now_ms());
  if (text.empty() && silent.empty()) text = fmt::format("no run is alive in '{}'\n", state.string());
  const bool printed = print_to_stdout(request.json ? status_json(answered, silent) : text, sink);
  for (const std::string& id : silent) {
    sink.error(fmt::format("run '{}' is alive and does not answer: its launcher hangs, starts or ends", id));
  }
  return printed && silent.empty() ? 0 : kExitRefused;
}

}  // namespace lrun::launcher
