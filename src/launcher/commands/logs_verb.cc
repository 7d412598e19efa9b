// In: `lrun logs`, a run's events and its log files. Out: the workers' lines on stdout, with the rank in front.
// run_verb() calls it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/message.h"
#include "base/rank_list.h"
#include "base/user_error.h"
#include "commands/find_run.h"
#include "commands/verbs.h"
#include "inspect/run_directory.h"
#include "logs/log_file_reader.h"
#include "logs/log_files.h"
#include "logs/rank_prefix.h"
#include "logs/terminal_text.h"
#include "process/exit_codes.h"
#include "report/diagnostics.h"
#include "report/runs_text.h"

namespace lrun::launcher {
namespace {

/// Prints lines in the form of the console, many in one write.
class LinePrinter {
 public:
  LinePrinter(std::string text, MessageSink& sink)
      : text_(std::move(text)),
        sink_(sink),
        terminal_(::isatty(STDOUT_FILENO) == 1),
        colour_(takes_colour(STDOUT_FILENO)) {}

  /// A terminal gets neither escape sequences of workers nor what a bar drew before it drew itself anew.
  void take(int rank, int width, std::string_view line) {
    if (line.find(text_) == std::string_view::npos) return;
    if (line.ends_with('\n')) line.remove_suffix(1);
    out_ += rank_prefix(rank, width, colour_);
    if (terminal_) {
      line = drawn_last(line);
      out_ += terminal_safe(line.substr(0, line.find_last_not_of('\r') + 1));
    } else {
      out_ += line;
    }
    out_ += '\n';
    any_ = true;
    constexpr std::size_t kMostKept = std::size_t{64} * 1024;
    if (out_.size() > kMostKept) flush();
  }

  void flush() {
    if (!failed_ && !out_.empty()) failed_ = !print_to_stdout(out_, sink_);
    out_.clear();
  }

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool any() const { return any_; }

 private:
  std::string text_;
  MessageSink& sink_;
  bool terminal_;
  bool colour_;
  bool failed_ = false;
  bool any_ = false;
  std::string out_;
};

/// Workers that were started together: an attempt has several such starts where nodes came or went, and a rank may be
/// another worker then.
using Start = std::vector<WorkerSpan>;

/// Those of one attempt, or of all.
std::vector<Start> starts_of(const Timeline& timeline, std::optional<int> attempt) {
  std::vector<Start> starts;
  for (const WorkerSpan& worker : timeline.workers) {
    if (attempt && worker.attempt != *attempt) continue;
    if (starts.empty() || starts.back().back().round != worker.round) starts.emplace_back();
    starts.back().push_back(worker);
  }
  for (Start& start : starts) {
    std::sort(start.begin(), start.end(),
              [](const WorkerSpan& one, const WorkerSpan& other) { return one.rank < other.rank; });
  }
  return starts;
}

/// The starts that were asked for: all of a named attempt, else the last one.
/// \throws UserError  there is none, or it has no log files or not these ranks.
std::vector<Start> wanted_starts(const RunEntry& run, const Timeline& timeline, bool began,
                                 const VerbRequest& request) {
  if (timeline.workers.empty() && (timeline.world_size > 0 || !began)) {  // a head does not know the size
    throw UserError("run '" + run.id + "' started no worker here", "'lrun report " + run.id + "' says why");
  }
  if (timeline.workers.empty()) {
    throw UserError("the log files of run '" + run.id + "' are on its hosts",
                    "'lrun logs " + run.id + "' on a host prints those of its ranks");
  }
  std::vector<Start> starts = starts_of(timeline, request.attempt);
  if (starts.empty()) {
    throw UserError(
        fmt::format("run '{}' has no attempt {}", run.id, request.attempt.value_or(0)),
        fmt::format("its last attempt is {}", timeline.workers.empty() ? 0 : timeline.workers.back().attempt));
  }
  if (!request.attempt) starts.erase(starts.begin(), starts.end() - 1);
  const auto has_files = [](const WorkerSpan& worker) { return !worker.logs.empty(); };
  if (std::none_of(starts.back().begin(), starts.back().end(), has_files)) {
    throw UserError("run '" + run.id + "' has no log files",
                    "'--log-dir /dev/null' keeps none; 'lrun report " + run.id + "' says how it went");
  }
  std::vector<int> there;
  for (const Start& start : starts) {
    for (const WorkerSpan& worker : start) there.push_back(worker.rank);
  }
  std::sort(there.begin(), there.end());
  there.erase(std::unique(there.begin(), there.end()), there.end());
  for (const auto& [first, last] : request.ranks) {
    const RankRanges range{{first, last}};
    if (std::any_of(there.begin(), there.end(), [&](int rank) { return has_rank(range, rank); })) continue;
    throw UserError(fmt::format("run '{}' has no rank {} here", run.id, first), "here it has " + ranks_text(there));
  }
  return starts;
}

/// The log files of one start, in the order in which they are printed.
class StartLogs {
 public:
  StartLogs(const Start& start, int width, const VerbRequest& request, LinePrinter& printer)
      : round_(start.back().round), width_(width), request_(&request), printer_(&printer) {
    add(start);
  }

  /// As WorkerSpan::round.
  [[nodiscard]] int round() const { return round_; }

  /// Those of its workers that are not known yet, since launchers of other hosts tell later.
  void add(const Start& start) {
    for (const WorkerSpan& worker : start) {
      const bool is_wanted = request_->ranks.empty() || has_rank(request_->ranks, worker.rank);
      if (worker.logs.empty() || !is_wanted || !ranks_.insert(worker.rank).second) continue;
      const std::filesystem::path folder = worker.logs;
      for (const LogStream stream : kLogStreams) {
        if (request_->stream && request_->stream != stream) continue;
        files_.emplace_back(worker.rank, LogFileReader(folder / LogFiles::place_of(worker.local_rank, stream)));
      }
    }
  }

  void skip_to_last(int lines) {
    for (auto& [rank, file] : files_) file.skip_to_last(static_cast<std::uint64_t>(lines));
  }

  /// Prints what has been written since the last call. \param to_its_end  nothing will be written any more
  void print(bool to_its_end) {
    for (auto& [rank, file] : files_) {
      const auto take = [this, rank = rank](std::string_view piece) { printer_->take(rank, width_, piece); };
      if (printer_->failed()) return;
      file.read(take);
      if (to_its_end) file.finish(take);
    }
    printer_->flush();
  }

 private:
  int round_;
  int width_;
  const VerbRequest* request_;
  LinePrinter* printer_;
  std::set<int> ranks_;
  std::vector<std::pair<int, LogFileReader>> files_;
};

/// Of all launchers.
std::uintmax_t size_of_events(const RunEntry& run) {
  std::uintmax_t all = 0;
  for (const std::filesystem::path& part : run.parts) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(part / "events.jsonl", error);
    if (!error) all += size;
  }
  return all;
}

void follow(const std::filesystem::path& folder, StartLogs logs, const VerbRequest& request, LinePrinter& printer) {
  std::uintmax_t known = 0;
  for (bool over = false; !over && !printer.failed();) {
    const std::optional<RunEntry> run = run_in(folder);
    if (!run) return;
    over = !run->alive;  // asked first: what was written before it ended is there
    const std::uintmax_t size = size_of_events(*run);
    logs.print(over);
    if (size != std::exchange(known, size)) {
      const Timeline timeline = timeline_of(*run);
      for (const Start& next : starts_of(timeline, request.attempt)) {
        if (next.back().round == logs.round()) logs.add(next);
        if (next.back().round <= logs.round()) continue;
        logs.print(true);
        logs = StartLogs(next, rank_width(timeline.world_size), request, printer);
      }
      logs.print(over);
    }
    constexpr Duration kMoment(200);  // log files on a file system of another host announce no changes
    if (!over && !wait_while_stdout_is_read(kMoment)) return;
  }
}

/// A first number is a rank of the last run where that has it. Else it may be a Slurm job.
VerbRequest with_job(VerbRequest request, const std::filesystem::path& state) {
  if (!request.run.empty() || request.ranks.empty()) return request;
  const auto [number, last] = request.ranks.front();
  if (number != last) return request;
  const std::vector<RunEntry> runs = list_all(state);
  const std::string job = std::to_string(number);
  if (std::none_of(runs.begin(), runs.end(), [&](const RunEntry& run) { return is_of_job(run, job); })) return request;
  if (const auto newest = read_run(runs.back()).timeline; newest && number < newest->world_size) return request;
  request.run = job;
  request.ranks.erase(request.ranks.begin());
  return request;
}

}  // namespace

int logs_verb(const VerbRequest& asked, const Environment& environment, MessageSink& sink) {
  const std::filesystem::path state = state_folder(environment);
  const VerbRequest request = with_job(asked, state);
  const bool of_living = request.follow && request.run.empty();
  const RunEntry run = of_living ? living_run(request.run, state, "lrun logs -f") : run_named(request.run, state);
  if (run.waits) {
    sink.print_lines(text_of_waiting(run));  // stdout is for what the ranks write
    return 0;
  }
  RunFiles files = read_run(run);
  const bool began = !files.result || result_words(files.result) != words_of_reason("start_failed");
  const Timeline timeline = timeline_in(std::move(files), run);
  const std::vector<Start> starts = wanted_starts(run, timeline, began, request);
  LinePrinter printer(request.text, sink);
  for (const Start& start : starts) {
    StartLogs logs(start, rank_width(timeline.world_size), request, printer);
    if (request.last_lines) logs.skip_to_last(*request.last_lines);
    if (request.follow && &start == &starts.back()) {
      follow(run.folder, std::move(logs), request, printer);
    } else {
      logs.print(true);
    }
  }
  if (!printer.any()) {
    const bool is_pattern = request.text.find_first_of("|*[\\^$") != std::string::npos;
    sink.note(request.text.empty()
                  ? "run '" + run.id + "' wrote nothing there"
                  : "no line there has '" + request.text + "'" + (is_pattern ? ", as plain text" : ""));
    if (is_pattern) sink.hint("'lrun logs | grep -E PATTERN' looks for a pattern");
  }
  return printer.failed() ? kExitRefused : 0;
}

}  // namespace lrun::launcher
