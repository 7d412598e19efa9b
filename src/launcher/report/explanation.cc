// In: what is known of a run. Out: its Explanation, as text and as JSON, within a bound. `lrun explain` calls it. Pure.
#include "report/explanation.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/duration.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/rank_list.h"
#include "base/shortened.h"
#include "base/split.h"
#include "logs/terminal_text.h"
#include "report/result_json.h"
#include "report/status_text.h"
#include "report/without_secrets.h"
#include "verdict/run_end.h"

namespace lrun::launcher {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostCommandBytes = 400;
constexpr std::size_t kMostTextBytes = 400;
constexpr std::size_t kMostLogBytes = 1024;
constexpr std::size_t kMostTextLines = 24;
constexpr std::size_t kMostGroups = 6;
constexpr std::size_t kMostAttempts = 5;
constexpr std::int64_t kQuietMs = 30'000;

std::string clean(std::string_view text) { return shortened(without_secrets(terminal_safe(text)), kMostTextBytes); }

/// Lines of lrun, without the word in front of each.
std::vector<std::string> lines_of(std::string_view text) {
  constexpr std::string_view kOurs = "lrun: ";
  std::vector<std::string> lines;
  for (std::string_view line : split_lines(text)) {
    if (lines.size() == kMostTextLines) break;
    if (line.starts_with(kOurs)) line.remove_prefix(kOurs.size());
    lines.push_back(clean(line));
  }
  return lines;
}

/// Ranks that ended alike, in the order of the first of each: 'ranks 0-1,3: exited with code 0'.
std::vector<std::string> groups_of(const std::vector<WorkerSpan>& workers, int without_rank, bool alive) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (const WorkerSpan& worker : workers) {
    if (worker.rank == without_rank) continue;
    const std::string unknown = alive ? "running" : "no end is known";
    const std::string& ending = worker.ended_ms == 0 ? unknown : worker.ending;
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& it) { return it.first == ending; });
    auto& ranks = same == groups.end() ? groups.emplace_back(ending, std::vector<int>()).second : same->second;
    ranks.push_back(worker.rank);
  }
  std::vector<std::string> lines;
  for (const auto& [ending, ranks] : groups) {
    if (lines.size() == kMostGroups) {
      lines.push_back(fmt::format("and {} more ways", groups.size() - kMostGroups));
      break;
    }
    lines.push_back(clean(ranks_text(ranks) + ": " + ending));
  }
  return lines;
}

/// The worker that failed first; nullptr: none did.
const WorkerSpan* first_failed(const std::vector<WorkerSpan>& workers) {
  const WorkerSpan* first = nullptr;
  for (const WorkerSpan& worker : workers) {
    if (worker.fate != WorkerSpan::Fate::kFailed) continue;
    const bool is_earlier = first == nullptr || std::tie(worker.ended_ms, worker.ended_order) <
                                                    std::tie(first->ended_ms, first->ended_order);
    if (is_earlier) first = &worker;
  }
  return first;
}

/// How the rounds before the last one ended, the last ones of them. An attempt that follows one is counted, unless it
/// is made because nodes came or went.
std::vector<std::string> tried_in(const Timeline& timeline) {
  std::map<int, std::vector<WorkerSpan>> rounds;
  for (const WorkerSpan& worker : timeline.workers) rounds[worker.round].push_back(worker);
  std::vector<std::string> lines;
  for (auto next = rounds.begin(); next != rounds.end();) {
    const std::vector<WorkerSpan>& workers = (next++)->second;
    if (next == rounds.end()) break;
    const int attempt = workers.front().attempt;
    const WorkerSpan* const failed = first_failed(workers);
    std::string how = "all were stopped";
    if (failed != nullptr) {
      how = fmt::format("rank {}: {}", failed->rank, failed->ending);
    } else if (next->second.front().attempt == attempt) {
      how = "the nodes of the job have changed";
    }
    lines.push_back(clean(fmt::format("attempt {}: {}", attempt, how)));
  }
  if (lines.size() <= kMostAttempts) return lines;
  const std::size_t left_out = lines.size() - kMostAttempts;
  lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(left_out));
  lines.insert(lines.begin(), counted(left_out, "earlier attempt"));
  return lines;
}

/// Ranks that have printed nothing for half a minute.
std::string quiet_in(const std::vector<RunStatus>& statuses) {
  std::vector<int> ranks;
  std::int64_t least = 0;
  for (const RunStatus& status : statuses) {
    for (const WorkerStatus& worker : status.workers) {
      if (!worker.running || worker.quiet_ms < kQuietMs) continue;
      least = ranks.empty() ? worker.quiet_ms : std::min(least, worker.quiet_ms);
      ranks.push_back(worker.rank);
    }
  }
  return ranks.empty() ? std::string() : fmt::format("{} for {}", ranks_text(ranks), format_elapsed(Duration(least)));
}

void take_culprit(const FailureRecord& culprit, Explanation& explanation) {
  explanation.rank = culprit.rank;
  explanation.host = clean(culprit.node);
  explanation.cause = name_of(culprit.cause);
  explanation.error = clean(culprit.error.empty() ? culprit.describe() : culprit.error);
  explanation.place = clean(culprit.location);
}

/// A file of another version may lack a field: the rest counts for nothing then.
void take_result(const std::string& result_json, Explanation& explanation) {
  try {
    const Json result = Json::parse(result_json);
    explanation.reason = clean(result.at("reason").get<std::string>());
    explanation.exit_code = json_integer(result.at("exit_code"));
    explanation.rank = json_integer(result.value("watched_rank", Json(-1)));
    explanation.hint = clean(result.at("hint").get<std::string>());
    explanation.text = lines_of(result.at("text").get<std::string>());
  } catch (const Json::exception&) {
    explanation.text.emplace_back("note: another version of lrun wrote result.json");
  }
  if (const auto culprit = culprit_in(result_json)) take_culprit(*culprit, explanation);
}

void take_end(const KnownOfRun& run, Explanation& explanation) {
  explanation.state = "ended";
  if (run.result_json) return take_result(*run.result_json, explanation);
  explanation.reason = name_of(RunEnd::Kind::kGuardDied);
  explanation.text.emplace_back("note: the run has no result: lrun was killed");
}

void take_life(const KnownOfRun& run, Explanation& explanation) {
  const bool waits = !run.timeline;
  explanation.state = waits ? "waiting" : "running";
  explanation.quiet = quiet_in(run.statuses);
  for (RunStatus& status : with_hosts_joined(run.statuses)) {
    for (std::string& line : lines_of(status_text(status, run.now_ms))) {
      if (explanation.text.size() < kMostTextLines) explanation.text.push_back(std::move(line));
    }
    if (explanation.command.empty()) explanation.command = command_text(status.argv, kMostCommandBytes);
  }
}

void take_timeline(const Timeline& timeline, const KnownOfRun& run, Explanation& explanation) {
  explanation.command = command_text(timeline.argv, kMostCommandBytes);
  explanation.world_size = timeline.world_size;
  explanation.started_ms = timeline.started_ms;
  explanation.took_ms = std::max<std::int64_t>(0, (run.alive ? run.now_ms : timeline.last_ms()) - timeline.started_ms);
  if (!run.alive && timeline.ended_ms > 0)
    explanation.ended_ago_ms = std::max<std::int64_t>(0, run.now_ms - timeline.ended_ms);
  if (run.statuses.empty()) explanation.others = groups_of(timeline.last_workers(), explanation.rank, run.alive);
  explanation.tried = tried_in(timeline);
}

/// A run that nobody has to look into is done again.
std::string next_command(const KnownOfRun& run, const Explanation& explanation) {
  const std::string& id = run.id;
  if (explanation.state == "waiting" || (run.alive && explanation.quiet.empty())) return "lrun status " + id;
  if (run.alive) return "lrun stack --brief " + id;
  const bool has_log = !run.log.empty() || explanation.reason == name_of(RunEnd::Kind::kWatched);
  if (explanation.rank >= 0 && has_log) return fmt::format("lrun logs {} {} --tail 50", id, explanation.rank);
  const std::optional<RunEnd::Kind> reason = run_end_named(explanation.reason);
  const bool is_no_mistake =
      reason == RunEnd::Kind::kInterrupted || reason == RunEnd::Kind::kNotice || reason == RunEnd::Kind::kGuardDied;
  return (is_no_mistake && run.can_repeat ? "lrun again " : "lrun report ") + id;
}

std::string first_line(const Explanation& explanation) {
  std::string text = "run " + explanation.run_id;
  if (explanation.ended_ago_ms >= 0) {
    text += fmt::format(", ended {} ago", format_elapsed(Duration(explanation.ended_ago_ms)));
  }
  text += ": ";
  if (explanation.state != "ended") {
    text += explanation.state;
  } else {
    text += words_of_reason(explanation.reason);
    if (explanation.exit_code >= 0) text += fmt::format(", exit code {}", explanation.exit_code);
  }
  if (explanation.took_ms > 0) text += " after " + format_elapsed(Duration(explanation.took_ms));
  if (explanation.world_size > 0) text += "; " + counted(explanation.world_size, "worker");
  if (!explanation.command.empty()) text += ": " + explanation.command;
  return text;
}

std::string whole_text(const Explanation& explanation) {
  std::string text = first_line(explanation) + "\n";
  for (const std::string& line : explanation.text) text += line + "\n";
  const auto add_line = [&text](std::string_view name, const std::string& value) {
    if (!value.empty()) text += fmt::format("{}: {}\n", name, value);
  };
  for (const std::string& line : explanation.others) add_line("others", line);
  for (const std::string& line : explanation.tried) add_line("tried", line);
  add_line("quiet", explanation.quiet);
  const std::string line = explanation.log_line > 0 ? fmt::format(":{}", explanation.log_line) : "";
  if (!explanation.log.empty()) add_line("log", explanation.log + line);
  add_line("next", explanation.next);
  return text;
}

std::string whole_json(const Explanation& explanation) {
  return json_text({{"schema", 1},
                    {"run_id", explanation.run_id},
                    {"state", explanation.state},
                    {"reason", explanation.reason},
                    {"exit_code", explanation.exit_code},
                    {"started_ms", explanation.started_ms},
                    {"took_ms", explanation.took_ms},
                    {"world_size", explanation.world_size},
                    {"command", explanation.command},
                    {"rank", explanation.rank},
                    {"host", explanation.host},
                    {"cause", explanation.cause},
                    {"error", explanation.error},
                    {"place", explanation.place},
                    {"log", explanation.log},
                    {"log_line", explanation.log_line},
                    {"text", explanation.text},
                    {"others", explanation.others},
                    {"tried", explanation.tried},
                    {"quiet", explanation.quiet},
                    {"hint", explanation.hint},
                    {"next", explanation.next}}) +
         "\n";
}

/// The first of the lines that a worker printed: the last ones matter most.
bool drop_evidence(std::vector<std::string>& text) {
  const auto first =
      std::find_if(text.begin(), text.end(), [](const std::string& line) { return line.starts_with("  | "); });
  if (first == text.end()) return false;
  text.erase(first);
  return true;
}

void cut_lists(Explanation& explanation, std::size_t most) {
  for (auto* list : {&explanation.text, &explanation.others, &explanation.tried}) {
    for (std::string& line : *list) line = shortened(line, most);
  }
}

/// All but what is to be typed or opened.
void cut_all(Explanation& explanation, std::size_t most) {
  for (std::string* text : {&explanation.reason, &explanation.command, &explanation.host, &explanation.error,
                            &explanation.place, &explanation.quiet, &explanation.hint}) {
    *text = shortened(*text, most);
  }
  cut_lists(explanation, most);
}

template <class Render>
std::string within_bound(Explanation& explanation, Render render) {
  constexpr std::size_t kMostLineBytes = 120;
  std::string whole = render(explanation);
  if (whole.size() <= kMostExplanationBytes) return whole;
  cut_lists(explanation, kMostLineBytes);
  whole = render(explanation);
  for (std::size_t most = kMostTextBytes; whole.size() > kMostExplanationBytes; whole = render(explanation)) {
    if (drop_evidence(explanation.text)) continue;
    most = most * 3 / 4;
    cut_all(explanation, most);
  }
  return whole;
}

}  // namespace

Explanation explanation_of(const KnownOfRun& run) {
  Explanation explanation{.run_id = clean(run.id)};
  if (run.alive) {
    take_life(run, explanation);
  } else {
    take_end(run, explanation);
  }
  if (run.timeline) take_timeline(*run.timeline, run, explanation);
  if (explanation.rank >= 0) {
    const std::string log = terminal_safe(run.log);
    if (log.size() <= kMostLogBytes) explanation.log = log;
    explanation.log_line = run.log_line;
  }
  explanation.next = next_command(run, explanation);
  return explanation;
}

int last_line_with(std::string_view log, std::string_view text) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20U;
  const std::string_view end = log.substr(log.size() - std::min(log.size(), kMostBytes));
  const std::size_t found = text.empty() ? std::string_view::npos : end.rfind(text);
  if (found == std::string_view::npos) return 0;
  const auto behind = static_cast<std::ptrdiff_t>(end.size() - found);
  return 1 + static_cast<int>(std::count(log.begin(), log.end() - behind, '\n'));
}

std::string explanation_text(Explanation explanation) { return within_bound(explanation, whole_text); }

std::string explanation_json(Explanation explanation) { return within_bound(explanation, whole_json); }

}  // namespace lrun::launcher
