// In: what is known of the kept runs. Out: the text or the JSON of `lrun runs`. Pure.
#include "report/runs_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

#include "base/duration.h"
#include "base/json.h"
#include "base/signal_names.h"
#include "logs/terminal_text.h"
#include "report/status_text.h"
#include "report/timeline.h"
#include "report/without_secrets.h"
#include "verdict/failure_record.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kFewestCommandColumns = 20;
constexpr std::size_t kMinuteBytes = std::string_view("2026-11-26 13:09").size();

std::string ending_words(const FailureRecord& record) {
  switch (record.ending) {
    case FailureRecord::Ending::kExited:
      return fmt::format("exit code {}", record.value);
    case FailureRecord::Ending::kSignaled:
      return signal_name(record.value);
    case FailureRecord::Ending::kExecFailed:
      return "not executed";
    case FailureRecord::Ending::kLost:
      break;
  }
  return "lost";
}

/// The reason of result.json as words: 'timed_out' is 'timed out'.
std::string reason_words(const std::string& reason, int signal_number) {
  if (reason == "succeeded") return "ok";
  return words_of_reason(reason) + (signal_number > 0 ? ": " + signal_name(signal_number) : "");
}

using Columns = std::array<std::string, 7>;
constexpr std::size_t kJobColumn = 1;
constexpr std::size_t kBeganColumn = 2;
constexpr std::size_t kCommandColumn = 6;

using Widths = std::array<std::size_t, std::tuple_size_v<Columns>>;  ///< 0: it is left out

std::size_t columns_before_command(const Widths& widths) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < kCommandColumn; ++i) sum += widths[i] == 0 ? 0 : widths[i] + 2;
  return sum;
}

Columns columns_of(const RunSummary& run) {
  const bool known = run.started_ms > 0;
  return {terminal_safe(run.id),
          run.job.empty() ? "-" : terminal_safe(run.job),
          known ? utc_time(run.started_ms).substr(0, kMinuteBytes) : "-",
          known ? format_elapsed(Duration(std::max<std::int64_t>(0, run.took_ms))) : "-",
          run.world_size > 0 ? std::to_string(run.world_size) : "-",
          terminal_safe(run.result),
          command_text(run.argv, std::string::npos)};
}

}  // namespace

std::string result_words(const std::optional<std::string>& result_json) {
  constexpr const char* kNone = "lrun was killed";
  if (!result_json) return kNone;
  try {
    const auto result = nlohmann::json::parse(*result_json);
    const auto reason = result.at("reason").get<std::string>();
    const auto& culprit = result.at("culprit");
    const auto record = culprit.is_null() ? std::nullopt : failure_record_from_json(json_text(culprit));
    if (!record) return reason_words(reason, result.at("signal").get<int>());
    const std::string rank = fmt::format("rank {}: {}", record->rank, ending_words(*record));
    return reason == "worker_failed" || reason == "start_failed" ? rank : reason_words(reason, 0) + ": " + rank;
  } catch (const nlohmann::json::exception&) {
    return kNone;
  }
}

std::string runs_text(const std::vector<RunSummary>& runs, int columns) {
  std::vector<Columns> lines{{"RUN", "JOB", "BEGAN (UTC)", "TOOK", "WORKERS", "RESULT", "COMMAND"}};
  for (const RunSummary& run : runs) lines.push_back(columns_of(run));
  Widths widths{};
  for (const Columns& line : lines) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  const bool has_jobs = std::any_of(runs.begin(), runs.end(), [](const RunSummary& run) { return !run.job.empty(); });
  if (!has_jobs) widths[kJobColumn] = 0;
  const std::size_t most = columns == 0 ? std::string::npos : static_cast<std::size_t>(columns);
  if (columns_before_command(widths) + std::min(widths[kCommandColumn], kFewestCommandColumns) > most) {
    widths[kBeganColumn] = 0;
  }
  const std::size_t before = columns_before_command(widths);
  const std::size_t room = most > before ? most - before : 1;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::string& command = lines[i + 1][kCommandColumn];
    if (command.size() > room) command = command_text(runs[i].argv, room - 1);
  }
  std::string text;
  for (const Columns& columns_of_line : lines) {
    std::string line;
    for (std::size_t i = 0; i < kCommandColumn; ++i) {
      if (widths[i] != 0) line += fmt::format("{:{}}  ", columns_of_line[i], widths[i]);
    }
    line += columns_of_line[kCommandColumn];
    text += (columns == 0 ? line : fitted(line, columns)) + "\n";
  }
  return text;
}

std::string runs_json(const std::vector<RunSummary>& runs) {
  nlohmann::json list = nlohmann::json::array();
  for (const RunSummary& run : runs) {
    list.push_back({{"run_id", run.id},
                    {"name", run.name},
                    {"job", run.job},
                    {"started_ms", run.started_ms},
                    {"took_ms", run.took_ms},
                    {"world_size", run.world_size},
                    {"alive", run.alive},
                    {"result", run.result},
                    {"argv", without_secrets(run.argv)}});
  }
  return nlohmann::json{{"schema", 1}, {"runs", list}}.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

}  // namespace lrun::launcher
