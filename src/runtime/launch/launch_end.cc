// In: the end of a launch as its supervisor saw it. Out: the same as text for a pipe, and the exception of launch().
// Called by the supervisor and by launch().
#include "runtime/launch/launch_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/rank_list.h"
#include "base/signal_names.h"
#include "base/split.h"

namespace lrun::detail {
namespace {

constexpr std::string_view kWhole = "end";  // the last line

std::string seconds_text(std::int64_t milliseconds) {
  return fmt::format("{:g} s", static_cast<double>(milliseconds) / 1000);
}

/// '; ranks 0,2 were stopped'.
std::string others_text(const Verdict& verdict) {
  std::string text;
  const auto add = [&text](const std::vector<int>& ranks, std::string_view one, std::string_view many) {
    if (!ranks.empty()) text += "; " + ranks_text(ranks) + " " + std::string(ranks.size() == 1 ? one : many);
  };
  add(verdict.failed_later, "failed later", "failed later");
  add(verdict.stopped_by_signal, "was stopped", "were stopped");
  add(verdict.killed, "had to be killed", "had to be killed");
  add(verdict.lost, "cannot be ended", "cannot be ended");
  return text;
}

std::string rank_text(const FailureRecord& record) {
  return fmt::format("rank {} (pid {} on {})", record.rank, record.pid, record.node);
}

/// The rank's own error describes its end best.
std::string culprit_text(const FailureRecord& record) {
  const std::string who = rank_text(record);
  if (record.error.empty()) return who + " " + record.describe();
  return fmt::format("{} {}: {}", who, record.describe(), record.error);
}

/// The lines behind the verdict, without the line that it already contains.
std::string evidence_of(const FailureRecord& record) {
  std::string text;
  for (const std::string& line : record.evidence) {
    if (line != record.error) text += "\n  " + line;
  }
  return text;
}

/// A code of 0 would pass for success.
WorkersFailed failure_of_unfinished(const LaunchEnd::Unfinished& unfinished,
                                    const std::vector<FailureRecord>& records) {
  constexpr int kUnfinished = 1;
  const auto record = std::find_if(records.begin(), records.end(),
                                   [&](const FailureRecord& each) { return each.rank == unfinished.rank; });
  const std::string who = record == records.end() ? fmt::format("rank {}", unfinished.rank) : rank_text(*record);
  return {who + " ended with code 0 " +
              (unfinished.reached ? "before the function that launch() runs had returned"
                                  : "before it came to this call of launch(): a rank of 'ddp_spawn' executes the "
                                    "program from its beginning, and has to come to the same calls"),
          unfinished.rank, kUnfinished};
}

}  // namespace

std::string LaunchEnd::text() const {
  std::string text = fmt::format("{} {} {} {} {}\n", static_cast<int>(end.kind), end.signal_number, end.limit_ms,
                                 unfinished ? unfinished->rank : -1, unfinished && unfinished->reached ? 1 : 0);
  for (const FailureRecord& record : records) text += to_json(record) + "\n";
  return text + std::string(kWhole) + "\n";
}

std::optional<LaunchEnd> LaunchEnd::parse(std::string_view text) {
  std::vector<std::string> lines = split_lines(text);
  if (lines.size() < 2 || lines.back() != kWhole) return std::nullopt;
  lines.pop_back();
  LaunchEnd end;
  std::istringstream words(lines.front());
  int kind = 0;
  int unfinished_rank = -1;
  int reached = 0;
  if (!(words >> kind >> end.end.signal_number >> end.end.limit_ms >> unfinished_rank >> reached)) return std::nullopt;
  end.end.kind = static_cast<RunEnd::Kind>(kind);
  if (unfinished_rank >= 0) end.unfinished = Unfinished{unfinished_rank, reached != 0};
  for (std::size_t i = 1; i < lines.size(); ++i) {
    auto record = failure_record_from_json(lines[i]);
    if (!record) return std::nullopt;
    end.records.push_back(std::move(*record));
  }
  return end;
}

WorkersFailed failure_of(const LaunchEnd& end) {
  const Verdict verdict = judge(end.end, end.records);
  const std::string others = others_text(verdict);
  const bool ended_early = verdict.culprit && verdict.culprit->cause == Cause::kEndedEarly;
  if (ended_early && !end.unfinished) {
    const FailureRecord& waited = *verdict.failure();
    return {culprit_text(*verdict.culprit) + others + ": " + waited.error + evidence_of(waited), verdict.culprit->rank,
            verdict.exit_code};
  }
  if (verdict.culprit && !ended_early) {
    const FailureRecord& culprit = *verdict.culprit;
    return {culprit_text(culprit) + others + evidence_of(culprit), culprit.rank, verdict.exit_code};
  }
  if (end.unfinished) return failure_of_unfinished(*end.unfinished, end.records);
  switch (end.end.kind) {
    case RunEnd::Kind::kTimedOut:
      return {"the ranks did not end within " + seconds_text(end.end.limit_ms) + others, -1, verdict.exit_code};
    case RunEnd::Kind::kInterrupted:
      return {"the launch was interrupted by " + signal_name(end.end.signal_number) + others, -1, verdict.exit_code};
    default:
      return {"the process that supervised the ranks was killed, and they with it", -1, verdict.exit_code};
  }
}

}  // namespace lrun::detail
