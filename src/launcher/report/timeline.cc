// In: the bytes of events.jsonl. Out: a Timeline of workers and milestones. Called by `lrun report`. Pure.
#include "report/timeline.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <map>
#include <utility>

#include "base/duration.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/shortened.h"
#include "base/signal_names.h"
#include "logs/terminal_text.h"
#include "report/verdict_text.h"
#include "verdict/failure_record.h"

namespace lrun::launcher {
namespace {

using Json = nlohmann::json;
using Fate = WorkerSpan::Fate;

constexpr std::size_t kMostLineBytes = std::size_t{1024} * 1024;
constexpr std::size_t kMostErrorBytes = 120;

/// 0 for a value that is no time.
std::int64_t in_milliseconds(double seconds) {
  constexpr double kMostSeconds = 1e11;
  return seconds > 0 && seconds < kMostSeconds ? (static_cast<std::int64_t>(seconds * 2000) + 1) / 2 : 0;
}

std::int64_t clock_time_of(const Json& event) { return in_milliseconds(event.at("time").get<double>()); }
std::int64_t steady_time_of(const Json& event) { return in_milliseconds(event.value("steady", 0.0)); }

/// By the clock as it was when the run began.
std::int64_t time_of(const Timeline& timeline, const Json& event) {
  const std::int64_t steady = steady_time_of(event);
  if (steady == 0 || timeline.started_steady_ms == 0) return clock_time_of(event);
  return timeline.started_ms + (steady - timeline.started_steady_ms);
}

WorkerSpan* find_worker(Timeline& timeline, int rank, int attempt) {
  // The last one: after a change of nodes there are others with the same numbers.
  const auto found = std::find_if(timeline.workers.rbegin(), timeline.workers.rend(), [&](const WorkerSpan& worker) {
    return worker.rank == rank && worker.attempt == attempt;
  });
  return found == timeline.workers.rend() ? nullptr : &*found;
}

/// An older lrun names the folder of the first workers only.
std::string logs_of(const Timeline& timeline, const Json& event, int attempt) {
  if (event.contains("logs") || timeline.workers.empty()) return event.value("logs", std::string());
  const std::filesystem::path first = timeline.workers.front().logs;
  return first.empty() ? std::string() : (first.parent_path() / fmt::format("attempt_{}", attempt)).string();
}

void add_workers(Timeline& timeline, const Json& event, int attempt, int order) {
  const std::string logs = logs_of(timeline, event, attempt);
  for (const Json& started : event.at("workers")) {
    WorkerSpan worker;
    worker.rank = started.at("rank").get<int>();
    worker.local_rank = started.at("local_rank").get<int>();
    worker.pid = started.at("pid").get<pid_t>();
    worker.attempt = attempt;
    worker.node = event.value("node", std::string());
    worker.round = event.value("round", order);  // an older lrun does not tell
    worker.logs = logs;
    worker.spawned_ms = time_of(timeline, event);
    worker.clock_ahead_ms = clock_time_of(event) - worker.spawned_ms;
    worker.spawned_order = order;
    timeline.workers.push_back(std::move(worker));
  }
}

void begin(Timeline& timeline, const Json& event, int order) {
  timeline.run_id = event.at("run_id").get<std::string>();
  timeline.argv = event.at("argv").get<std::vector<std::string>>();
  timeline.command_line = event.value("command_line", timeline.command_line);
  timeline.command_line_bytes = event.value("command_line_bytes", std::size_t{0});
  timeline.folder = event.value("folder", std::string());
  timeline.strategy = event.at("strategy").get<std::string>();
  timeline.plan = event.value("plan", std::string());
  timeline.world_size = event.at("world_size").get<int>();
  timeline.started_ms = clock_time_of(event);
  timeline.started_steady_ms = steady_time_of(event);
  add_workers(timeline, event, event.value("attempt", 0), order);
}

Fate fate_of(const FailureRecord& record) {
  if (record.success()) return Fate::kSucceeded;
  return record.stopped_by_lrun() ? Fate::kStopped : Fate::kFailed;
}

void end_worker(Timeline& timeline, const Json& event, std::string_view line, int order) {
  const std::optional<FailureRecord> record = failure_record_from_json(line);
  WorkerSpan* const worker = record ? find_worker(timeline, record->rank, record->attempt) : nullptr;
  if (worker == nullptr) return;
  worker->node = record->node;
  worker->ended_ms = time_of(timeline, event);
  worker->ended_order = order;
  worker->fate = fate_of(*record);
  worker->peak_memory_kib = std::max(worker->peak_memory_kib, record->peak_memory_kib);
  const bool by_our_signal = worker->fate == Fate::kStopped && record->ending == FailureRecord::Ending::kSignaled;
  worker->ending = by_our_signal ? signal_name(record->value) : record->describe();
  if (worker->fate == Fate::kStopped) worker->ending = "stopped by lrun: " + worker->ending;
  if (!record->error.empty() && worker->fate == Fate::kFailed) {
    worker->ending += ": " + shortened(record->error, kMostErrorBytes);
  }
}

void add_milestone(Timeline& timeline, const Json& event, std::string_view what, int order) {
  WorkerSpan* const worker = find_worker(timeline, event.at("rank").get<int>(), event.at("attempt").get<int>());
  if (worker != nullptr) worker->milestones.push_back({time_of(timeline, event), std::string(what), order});
}

void add_usage(Timeline& timeline, const Json& event) {
  const int attempt = json_integer(event.at("attempt"));
  const std::int64_t now = time_of(timeline, event);
  const Json& ranks = event.at("rank");
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const UsageSample sample{.ms = now,
                             .memory_kib = json_integer<std::int64_t>(event.at("memory_kib").at(i)),
                             .cpu_percent = json_integer(event.at("cpu_percent").at(i))};
    WorkerSpan* const worker = find_worker(timeline, json_integer(ranks.at(i)), attempt);
    if (worker == nullptr || sample.memory_kib < 0 || sample.cpu_percent < 0) continue;
    worker->usage.push_back(sample);
    worker->peak_memory_kib = std::max(worker->peak_memory_kib, sample.memory_kib);
  }
}

/// Files have the time of the clock as it is when they are written, or that of a file server, which may be ahead.
void add_checkpoints(Timeline& timeline, const Json& event, int order) {
  if (timeline.workers.empty()) return;
  const std::int64_t now = time_of(timeline, event);
  const std::int64_t clock_ahead = clock_time_of(event) - now;
  const auto time_in = [&](const char* name) {
    const std::int64_t ms = in_milliseconds(event.value(name, 0.0));
    return ms == 0 ? 0 : std::min(ms - clock_ahead, now);
  };
  timeline.checkpoints.push_back(
      {timeline.workers.back().round, time_in("written"), time_in("written_in_memory"), order});
}

/// The reason of the end; empty where a worker failed, whose end is an entry of its own. The event holds no limits.
std::string stop_reason(const Json& event) {
  const std::string reason = event.value("reason", std::string());
  if (reason == "timed_out") return "the time of --timeout is over";
  if (reason == "start_timed_out") return "the time of --start-timeout is over";
  if (reason == "watched") return "a rule of --watch holds";
  if (reason == "hang") return "no progress for the time of --hang-timeout";
  const std::optional<RunEnd::Kind> kind = run_end_named(reason);
  if (!kind || *kind == RunEnd::Kind::kWorkerFailed) return {};
  return reason_text(
      RunEnd{.kind = *kind, .signal_number = event.value("signal", 0), .who = event.value("why", std::string())});
}

/// Empty when a worker failed and no other was left to be stopped.
std::string stop_text(const Json& event) {
  const int others = event.at("others").get<int>();
  std::string why = stop_reason(event);
  if (others == 0) return why;
  return fmt::format("{}{}stopping {}", why, why.empty() ? "" : ": ", counted(others, "worker"));
}

/// 'timed_out' as 'timed out'.
std::string plain(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string restart_mark(const Json& event) {
  const Duration delay(event.value("delay_ms", std::int64_t{0}));
  const std::string number = fmt::format("restart {}", event.value("attempt", 0));
  return delay > Duration::zero() ? number + " in " + format_duration(delay) : number;
}

/// Of an event that is the whole run's; a later lrun may add kinds.
std::string mark_text(const std::string& name, const Json& event) {
  if (name == "stopping") return stop_text(event);
  if (name == "restarting") return restart_mark(event);
  if (name == "nodes_changed") return "the nodes of the job have changed";
  if (name == "watched") return terminal_safe(event.at("text").get<std::string>());
  if (name == "killing") return "killing workers that have not ended";
  if (name == "settling") return "waiting for what other ranks report";
  return plain(name);
}

/// \param order  how many events came before it.
void read_event(Timeline& timeline, const Json& event, std::string_view line, int order) {
  const std::string name = event.at("event").get<std::string>();
  if (name == "run_started") {
    begin(timeline, event, order);
  } else if (name == "attempt_started") {
    add_workers(timeline, event, event.at("attempt").get<int>(), order);
  } else if (name == "worker_connected") {
    add_milestone(timeline, event, kConnectedToStore, order);
  } else if (name == "first_step") {
    add_milestone(timeline, event, kFirstStep, order);
  } else if (name == "usage") {
    add_usage(timeline, event);
  } else if (name == "worker_ended") {
    end_worker(timeline, event, line, order);
  } else if (name == "checkpoints_found") {
    add_checkpoints(timeline, event, order);
  } else if (name == "run_ended") {
    timeline.ended_ms = time_of(timeline, event);
    timeline.reason = words_of_reason(event.at("reason").get<std::string>());
    timeline.exit_code = event.at("exit_code").get<int>();
    timeline.culprit = json_integer(event.value("rank", Json(-1)));
  } else {
    if (name == "stopping") timeline.stops_ms.push_back(time_of(timeline, event));
    if (name == "restarting" || name == "nodes_changed") timeline.goes_on_ms.push_back(time_of(timeline, event));
    const std::string words = mark_text(name, event);
    if (!words.empty()) timeline.marks.push_back({time_of(timeline, event), words, order});
  }
}

/// Larger than all orders in it.
int order_after(const Timeline& timeline) {
  int last = 0;
  for (const Milestone& mark : timeline.marks) last = std::max(last, mark.order);
  for (const CheckpointTimes& found : timeline.checkpoints) last = std::max(last, found.order);
  for (const WorkerSpan& worker : timeline.workers) {
    last = std::max({last, worker.spawned_order, worker.ended_order});
    for (const Milestone& milestone : worker.milestones) last = std::max(last, milestone.order);
  }
  return last + 1;
}

/// Adds the workers, and the marks that the others have not told so often. \param order  that of its first event
void add_part(Timeline& all, Timeline part, int order) {
  for (WorkerSpan& worker : part.workers) {
    worker.spawned_order += order;
    worker.ended_order += order;
    for (Milestone& milestone : worker.milestones) milestone.order += order;
    all.workers.push_back(std::move(worker));
  }
  all.stops_ms.insert(all.stops_ms.end(), part.stops_ms.begin(), part.stops_ms.end());
  for (CheckpointTimes& times : part.checkpoints) {
    times.order += order;
    all.checkpoints.push_back(times);
  }
  all.goes_on_ms.insert(all.goes_on_ms.end(), part.goes_on_ms.begin(), part.goes_on_ms.end());
  std::map<std::string, int> told;
  for (const Milestone& mark : all.marks) ++told[mark.what];
  for (Milestone& mark : part.marks) {
    if (told[mark.what]-- > 0) continue;
    mark.order += order;
    all.marks.push_back(std::move(mark));
  }
}

int first_round(const Timeline& timeline) {
  return timeline.workers.empty() ? INT_MAX : timeline.workers.front().round;
}
int last_round(const Timeline& timeline) { return timeline.workers.empty() ? -1 : timeline.workers.back().round; }

}  // namespace

std::string words_of_reason(const std::string& name) {
  if (name == name_of(RunEnd::Kind::kGuardDied)) return "lrun was killed";
  if (name == name_of(RunEnd::Kind::kLauncherFailed)) return "lrun failed";
  if (name == name_of(RunEnd::Kind::kHeadLost)) return "connection lost";
  return plain(name);
}

std::vector<WorkerSpan> Timeline::last_workers() const {
  std::vector<WorkerSpan> last;
  for (const WorkerSpan& worker : workers) {
    if (worker.round == workers.back().round) last.push_back(worker);
  }
  return last;
}

std::vector<Milestone> Timeline::marks_with_checkpoints() const {
  std::map<int, CheckpointTimes> rounds;
  for (const CheckpointTimes& found : checkpoints) {
    CheckpointTimes& newest = rounds.try_emplace(found.round, found).first->second;
    newest.kept_ms = std::max(newest.kept_ms, found.kept_ms);
    newest.in_memory_ms = std::max(newest.in_memory_ms, found.in_memory_ms);
  }
  std::vector<Milestone> all = marks;
  for (const auto& [round, newest] : rounds) {
    const bool is_in_memory = newest.in_memory_ms > newest.kept_ms;
    const std::int64_t ms = std::max(newest.kept_ms, newest.in_memory_ms);
    if (ms < started_ms) continue;
    all.push_back({ms, is_in_memory ? "newest checkpoint, in memory" : "newest checkpoint", newest.order});
  }
  return all;
}

std::vector<std::string> Timeline::milestone_names() const {
  std::vector<Milestone> all;
  for (const WorkerSpan& worker : workers) all.insert(all.end(), worker.milestones.begin(), worker.milestones.end());
  std::stable_sort(all.begin(), all.end(), [](const Milestone& a, const Milestone& b) { return a.ms < b.ms; });
  std::vector<std::string> names;
  for (const Milestone& milestone : all) {
    if (std::find(names.begin(), names.end(), milestone.what) == names.end()) names.push_back(milestone.what);
  }
  return names;
}

std::int64_t Timeline::last_ms() const {
  std::int64_t last = std::max({started_ms, ended_ms, now_ms});
  for (const Milestone& mark : marks) last = std::max(last, mark.ms);
  for (const WorkerSpan& worker : workers) {
    last = std::max({last, worker.spawned_ms, worker.ended_ms});
    for (const Milestone& milestone : worker.milestones) last = std::max(last, milestone.ms);
    for (const UsageSample& sample : worker.usage) last = std::max(last, sample.ms);
  }
  return last;
}

const WorkerSpan* Timeline::largest_worker() const {
  const auto largest = std::max_element(
      workers.begin(), workers.end(),
      [](const WorkerSpan& one, const WorkerSpan& two) { return one.peak_memory_kib < two.peak_memory_kib; });
  return largest == workers.end() || largest->peak_memory_kib < 0 ? nullptr : &*largest;
}

std::optional<Timeline> timeline_from_events(std::string_view events) {
  Timeline timeline;
  int order = 0;
  while (!events.empty()) {
    const auto end = events.find('\n');
    if (end == std::string_view::npos) break;  // being written
    const std::string_view line = events.substr(0, end);
    events.remove_prefix(end + 1);
    if (line.size() > kMostLineBytes) continue;
    try {
      const Json event = Json::parse(line);
      if (timeline.started_ms == 0 && event.at("event") != "run_started") continue;
      read_event(timeline, event, line, order++);
    } catch (const Json::exception&) {
      continue;
    }
  }
  return timeline.started_ms == 0 ? std::nullopt : std::optional(std::move(timeline));
}

std::size_t deciding_part(const std::vector<Timeline>& parts) {
  const auto decides = std::max_element(parts.begin(), parts.end(), [](const Timeline& one, const Timeline& other) {
    return std::pair(last_round(one), one.ended_ms) < std::pair(last_round(other), other.ended_ms);
  });
  return static_cast<std::size_t>(decides - parts.begin());
}

Timeline merged(std::vector<Timeline> parts) {
  const auto first = std::min_element(parts.begin(), parts.end(), [](const Timeline& one, const Timeline& other) {
    return first_round(one) < first_round(other);
  });
  const Timeline& last = parts[deciding_part(parts)];
  Timeline all = *first;
  all.ended_ms = last.ended_ms;
  all.reason = last.reason;
  all.exit_code = last.exit_code;
  all.culprit = last.culprit;
  int order = order_after(all);
  for (auto part = parts.begin(); part != parts.end(); ++part) {
    if (part == first) continue;
    if (part->workers.empty()) {
      all.command_line = part->command_line;
      all.command_line_bytes = part->command_line_bytes;
      all.folder = part->folder;
    }
    all.started_ms = std::min(all.started_ms, part->started_ms);
    const int next = order + order_after(*part);
    add_part(all, std::move(*part), std::exchange(order, next));
  }
  std::stable_sort(all.workers.begin(), all.workers.end(),
                   [](const WorkerSpan& one, const WorkerSpan& other) { return one.round < other.round; });
  return all;
}

}  // namespace lrun::launcher
