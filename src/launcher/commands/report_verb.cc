// In: the record of a run that has ended, or runs. Out: its verdict on stdout, as JSON, or as a page in a file.
// run_verb() calls it.
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/clock.h"
#include "base/fd.h"
#include "base/user_error.h"
#include "commands/find_run.h"
#include "commands/verbs.h"
#include "inspect/log_births.h"
#include "inspect/run_directory.h"
#include "process/exit_codes.h"
#include "report/diagnostics.h"
#include "report/goodput.h"
#include "report/timeline.h"
#include "report/timeline_html.h"

namespace lrun::launcher {
namespace {

/// Of a worker's log files.
std::filesystem::path folder_of(const WorkerSpan& worker) {
  return std::filesystem::path(worker.logs) / std::to_string(worker.local_rank);
}

/// For links, where a browser of this machine opens them.
void add_log_files(Timeline& timeline) {
  for (WorkerSpan& worker : timeline.workers) {
    if (worker.logs.empty()) continue;
    const std::filesystem::path folder = folder_of(worker);
    for (const char* name : {"stderr.log", "stdout.log"}) {
      std::error_code error;
      if (std::filesystem::is_regular_file(folder / name, error)) worker.log_files.push_back((folder / name).string());
    }
  }
}

/// Where the launcher does not see what workers print first, the files do.
void add_first_outputs(Timeline& timeline) {
  for (WorkerSpan& worker : timeline.workers) {
    if (worker.logs.empty()) continue;
    const std::int64_t born = first_output_ms(folder_of(worker)) - worker.clock_ahead_ms;
    const bool is_after_its_end = worker.ended_ms != 0 && born > worker.ended_ms;  // somebody set the clock meanwhile
    if (born >= worker.spawned_ms && !is_after_its_end)
      worker.milestones.push_back({born, "first output", worker.spawned_order});
  }
}

/// The verdict that was printed at the end, from result.json; empty for a run without one, or that succeeded.
std::string verdict_of(const RunEntry& run, const std::optional<std::string>& result) {
  if (!result) {
    const std::string why = run.alive ? "the run goes on" : "the run has no result: lrun was killed";
    return message_line(Severity::kNote, why);
  }
  try {
    return nlohmann::json::parse(*result).at("text").get<std::string>();
  } catch (const nlohmann::json::exception&) {
    return message_line(Severity::kNote, "another version of lrun wrote result.json");
  }
}

void write_page(const std::string& file, std::string_view page) {
  const Fd out(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (const int error = out ? write_all(out.get(), page) : errno; error != 0) {
    throw UserError(fmt::format("cannot write '{}': {}", file, std::strerror(error)), "name a file you may write to");
  }
}

int print_goodput(const VerbRequest& request, const RunEntry& run, const Goodput& goodput, MessageSink& sink) {
  if (goodput.attempts.empty()) {
    throw UserError("no worker of run '" + run.id + "' ran on this host", "'lrun report' tells what happened");
  }
  const std::string& name = run.name.empty() ? run.job() : run.name;
  const std::string text = request.json ? goodput_json(goodput, name) : goodput_text(goodput, name);
  return print_to_stdout(text, sink) ? 0 : kExitRefused;
}

}  // namespace

int report_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink) {
  const std::filesystem::path state = state_folder(environment);
  const RunEntry run = request.goodput ? run_of_job_named(request.run, state) : run_named(request.run, state);
  if (run.waits) {
    if (!request.html_file.empty() || request.goodput) {
      throw UserError("run '" + run.id + "' has not begun", "'lrun status' says for what it waits");
    }
    return print_to_stdout(text_of_waiting(run), sink) ? 0 : kExitRefused;
  }
  RunFiles files = read_run(run);
  const std::string verdict = verdict_of(run, files.result);
  Timeline timeline = timeline_in(std::move(files), run);
  if (run.alive) timeline.now_ms = wall_ms();
  const bool needs_job = request.goodput || !request.html_file.empty();
  Goodput goodput;
  if (needs_job) goodput = goodput_of(timelines_of_job(run, timeline, state));
  add_first_outputs(timeline);
  if (!request.html_file.empty()) {
    add_log_files(timeline);
    const std::string page = timeline_html(timeline, verdict, goodput_html(goodput));
    if (request.html_file == "-") return print_to_stdout(page, sink) ? 0 : kExitRefused;
    write_page(request.html_file, page);
    sink.note(fmt::format("the page is in '{}'", request.html_file));
  }
  if (request.goodput) return print_goodput(request, run, goodput, sink);
  const std::string text = timeline_text(timeline) + (verdict.empty() ? "" : "\n") + verdict;
  return print_to_stdout(text, sink) ? 0 : kExitRefused;
}

}  // namespace lrun::launcher
