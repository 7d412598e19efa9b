// In: events of a run. Out: lines of events.jsonl in the run's folder. RunRecord owns one; ConsoleReporter,
// AttemptLoop and NodeLauncher write to it.
#include "report/event_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <utility>

#include "base/appended_file.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/shortened.h"
#include "base/utf8.h"
#include "report/result_json.h"
#include "report/verdict_text.h"

namespace lrun::launcher {
namespace {

constexpr const char* kEventsName = "events.jsonl";
// Readers take lines of up to 1 MiB. Six bytes of JSON may stand for one of a program's.
constexpr std::size_t kMostProgramBytes = std::size_t{32} * 1024;
constexpr std::size_t kMostCommandLineBytes = std::size_t{512} * 1024;
constexpr std::size_t kMostPlanBytes = std::size_t{16} * 1024;

std::string started(const std::vector<Worker>& workers) {
  std::string list = "[";
  for (const Worker& worker : workers) {
    list += fmt::format(R"({}{{"rank":{},"local_rank":{},"pid":{}}})", list.size() > 1 ? "," : "", worker.rank,
                        worker.local_rank, worker.process.pid());
  }
  return list + "]";
}

/// With milliseconds.
std::string seconds_at(auto time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  return fmt::format("{}.{:03}", ms / 1000, ms % 1000);
}

/// Its beginning, to be shown.
std::vector<std::string> without_end(std::vector<std::string> argv) {
  std::size_t left = kMostProgramBytes;
  for (std::size_t word = 0; word < argv.size(); ++word) {
    if (argv[word].size() >= left) {
      argv[word] = shortened(argv[word], left);
      argv.resize(word + 1);
      break;
    }
    left -= argv[word].size() + 1;
  }
  return argv;
}

/// The command line of lrun and where it was typed, as fields. Empty where JSON cannot hold them as they are; only the
/// size of a line that would make the event too long for its readers.
std::string typed_fields(const std::vector<std::string>& command_line) {
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error).string();
  const auto fits = [](const std::string& text) { return valid_bytes(text) == text.size(); };
  if (command_line.empty() || error || !fits(folder)) return {};
  if (!std::all_of(command_line.begin(), command_line.end(), fits)) return {};
  const std::string words = json_array(command_line);
  if (words.size() > kMostCommandLineBytes) return fmt::format(R"("command_line_bytes":{},)", words.size());
  return fmt::format(R"("command_line":{},"folder":{},)", words, json_string(folder));
}

void add_culprit(nlohmann::json& fields, const FailureRecord* culprit) {
  if (culprit == nullptr) return;
  fields["rank"] = culprit->rank;
  fields["pid"] = culprit->pid;
  fields["attempt"] = culprit->attempt;
  fields["cause"] = name_of(culprit->cause);
}

}  // namespace

EventLog::EventLog(const Folder& run_folder) : file_(open_to_append(run_folder, kEventsName, 0600)) {
  if (file_) return;
  throw std::system_error(errno, std::generic_category(), "open '" + (run_folder.path() / kEventsName).string() + "'");
}

void EventLog::hold_back(SteadyTime since) {
  held_back_.emplace();
  held_since_ = since;
}

void EventLog::run_started(const LaunchPlan& plan, const Membership& membership, const std::vector<Worker>& workers,
                           const std::filesystem::path& logs, const std::vector<std::string>& command_line,
                           const std::string& plan_text) {
  if (!file_) return;
  write_first(
      "run_started",
      fmt::format(
          R"({{"run_id":{},"argv":{},{}"strategy":{},"world_size":{},"master_port":{},"launcher_pid":{},"logs":{},"plan":{},"node":{},"round":{},"attempt":{},"workers":{}}})",
          json_string(plan.run_id), json_array(without_end(plan.argv)), typed_fields(command_line),
          json_string(text_of(plan.strategy.value)), plan.world_size, membership.master_port, ::getpid(),
          json_string(logs.string()), json_string(shortened(plan_text, kMostPlanBytes)),
          json_string(membership.self.name), membership.round, membership.attempt, started(workers)));
}

void EventLog::attempt_started(const Membership& membership, const std::vector<Worker>& workers,
                               const std::filesystem::path& logs) {
  if (!file_) return;
  write_first("attempt_started", fmt::format(R"({{"round":{},"attempt":{},"node":{},"logs":{},"workers":{}}})",
                                             membership.round, membership.attempt, json_string(membership.self.name),
                                             json_string(logs.string()), started(workers)));
}

void EventLog::restarting(int attempt, Duration delay) {
  if (!file_) return;
  write("restarting", nlohmann::json{{"attempt", attempt}, {"delay_ms", delay.count()}}.dump());
}

void EventLog::worker_connected(int rank, int attempt) {
  if (file_) write("worker_connected", fmt::format(R"({{"rank":{},"attempt":{}}})", rank, attempt));
}

void EventLog::first_step(int rank, int attempt, std::int64_t steady_ns) {
  if (!file_) return;
  const auto then = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(steady_ns));
  const auto ago = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - then);
  write("first_step", fmt::format(R"({{"rank":{},"attempt":{}}})", rank, attempt), ago);
}

void EventLog::used(int attempt, const std::vector<WorkerStatus>& workers) {
  if (!file_) return;
  std::vector<int> ranks;
  std::vector<std::int64_t> memory;
  std::vector<int> cpu;
  for (const WorkerStatus& worker : workers) {
    if (worker.use.resident_bytes < 0 || worker.use.cpu_percent < 0) continue;
    ranks.push_back(worker.rank);
    memory.push_back(worker.use.resident_bytes / 1024);
    cpu.push_back(worker.use.cpu_percent);
  }
  if (ranks.empty()) return;
  const nlohmann::json fields{{"attempt", attempt}, {"rank", ranks}, {"memory_kib", memory}, {"cpu_percent", cpu}};
  write("usage", fields.dump());
}

void EventLog::worker_ended(const FailureRecord& record) {
  if (file_) write("worker_ended", to_json(record));
}

void EventLog::checkpoints_found(int attempt, std::int64_t kept_ns, std::int64_t in_memory_ns) {
  if (!file_ || std::max(kept_ns, in_memory_ns) == 0) return;
  constexpr double kNanosecondsPerSecond = 1e9;
  nlohmann::json fields{{"attempt", attempt}};
  if (kept_ns > 0) fields["written"] = static_cast<double>(kept_ns) / kNanosecondsPerSecond;
  if (in_memory_ns > 0) fields["written_in_memory"] = static_cast<double>(in_memory_ns) / kNanosecondsPerSecond;
  write("checkpoints_found", fields.dump());
}

void EventLog::settling(int rank, Duration moment) {
  if (file_) write("settling", fmt::format(R"({{"rank":{},"moment_ms":{}}})", rank, moment.count()));
}

void EventLog::watched(int rank, const std::string& text) {
  if (file_) write("watched", fmt::format(R"({{"rank":{},"text":{}}})", rank, json_string(text)));
}

void EventLog::stopping(const RunEnd& end, const FailureRecord* cause, int others) {
  if (!file_) return;
  nlohmann::json fields{{"reason", name_of(end.kind)}, {"signal", end.signal_number}, {"others", others}};
  if (end.kind == RunEnd::Kind::kNotice || end.changes_nodes()) fields["why"] = reason_text(end);
  add_culprit(fields, cause);
  write("stopping", json_text(fields));
}

void EventLog::noted(std::string_view event) {
  if (file_) write(event, "{}");
}

void EventLog::run_ended(const Verdict& verdict) {
  if (!file_) return;
  nlohmann::json fields{{"reason", name_of(verdict.end.kind)},
                        {"exit_code", verdict.exit_code},
                        {"signal", verdict.die_of_signal},
                        {"restarts", verdict.restarts}};
  add_culprit(fields, verdict.culprit ? &*verdict.culprit : nullptr);
  write("run_ended", fields.dump());
}

void EventLog::write(std::string_view event, std::string_view fields, Duration ago) {
  std::string line = std::exchange(cut_, false) ? "\n" : "";
  line += fmt::format(R"({{"schema":1,"time":{},"steady":{},"event":"{}")",
                      seconds_at(std::chrono::system_clock::now() - ago), seconds_at(steady_now() - ago), event);
  const std::string_view inside = fields.substr(1, fields.size() - 2);
  if (!inside.empty()) line.append(",").append(inside);
  line += "}\n";
  append(line);
}

/// Writes this event before those that were held back.
void EventLog::write_first(std::string_view event, std::string_view fields) {
  const std::optional<std::string> later = std::exchange(held_back_, std::nullopt);
  write(event, fields, later ? std::chrono::duration_cast<Duration>(steady_now() - held_since_) : Duration::zero());
  if (later && !later->empty()) append(*later);
}

/// A full disk takes only the beginning of a line: later events then begin on a line of their own.
void EventLog::append(std::string_view line) {
  if (held_back_) {
    held_back_->append(line);
    return;
  }
  const bool was_cut = line.front() == '\n';
  const std::size_t size = line.size();
  (void)write_all(file_.get(), line);
  cut_ = !line.empty() && (was_cut || line.size() < size);
}

}  // namespace lrun::launcher
