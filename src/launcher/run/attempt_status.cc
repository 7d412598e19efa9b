// In: an attempt and its output. Out: its status for `lrun status`, and the lines of -v about its start. NodeLauncher
// calls it.
#include "run/attempt_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/nearest.h"
#include "base/process_stat.h"
#include "base/shortened.h"
#include "plan/cpu_binding.h"
#include "plan/python_program.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostLineBytes = 400;

std::string_view name_of(SupervisionState::Phase phase) {
  switch (phase) {
    case SupervisionState::Phase::kStopping:
      return "stopping";
    case SupervisionState::Phase::kKilling:
      return "killing";
    case SupervisionState::Phase::kLingering:
      return "lingering";
    case SupervisionState::Phase::kBackingOff:
      return "backing_off";
    case SupervisionState::Phase::kOver:
      return "over";
    default:
      return "running";
  }
}

bool is_stopped(pid_t pid) {
  const std::optional<ProcessStat> stat = stat_of_process(pid);
  return stat && stat->state == 'T';
}

/// Workers may write anything there.
StepsDone steps_of(const Progress& progress) {
  if (progress.steps == 0) return {};
  constexpr std::int64_t kMillisecond = 1'000'000;
  constexpr std::uint64_t kMostSteps = std::numeric_limits<std::int64_t>::max();
  const std::int64_t now = nanoseconds(steady_now());
  const std::int64_t last = std::clamp<std::int64_t>(progress.steady_ns, 0, now);
  const std::int64_t first = std::clamp<std::int64_t>(progress.first_steady_ns, 0, last);
  return {.count = static_cast<std::int64_t>(std::min<std::uint64_t>(progress.steps, kMostSteps)),
          .took_ms = (last - first) / kMillisecond,
          .last_ms_ago = (now - last) / kMillisecond};
}

std::set<int> ranks_stopped_by_lrun(const std::vector<FailureRecord>& records) {
  std::set<int> ranks;
  for (const FailureRecord& record : records) {
    if (record.cause == Cause::kStoppedByLrun) ranks.insert(record.rank);
  }
  return ranks;
}

/// A worker that lrun stopped is not told by its signal, which would look like somebody else's.
std::string ending_of(const Worker& worker, const std::set<int>& stopped_by_lrun) {
  const auto& ended = worker.process.status();
  if (!ended) return {};
  return stopped_by_lrun.contains(worker.rank) ? "stopped by lrun" : ended->text();
}

std::string last_line_of(const LogRouter& logs, int local_rank) {
  const std::vector<TailLine> tail = logs.tail(local_rank);
  for (auto line = tail.rbegin(); line != tail.rend(); ++line) {
    if (line->text.find_first_not_of(" \t") != std::string::npos) return shortened(line->text, kMostLineBytes);
  }
  return {};
}

}  // namespace

bool runs_python(const LaunchPlan& plan) { return plan.python || is_python(plan.argv.front()); }

bool are_quiet(const Attempt& attempt, const LogRouter& logs, Duration limit) {
  bool any = false;
  for (const Worker& worker : attempt.workers()) {
    if (worker.process.status()) continue;
    any = true;
    const auto lifetime = std::chrono::floor<Duration>(steady_now() - worker.started);
    if (logs.quiet(worker.local_rank).value_or(lifetime) < limit) return false;
  }
  return any;
}

RunStatus attempt_status(Attempt& attempt, const LogRouter& logs) {
  RunStatus status;
  const SupervisionState& state = attempt.supervisor().state();
  status.attempt = attempt.membership().attempt;
  status.phase = name_of(state.phase);
  status.suspended = state.suspended;
  const std::set<int> stopped_by_lrun = ranks_stopped_by_lrun(attempt.supervisor().records());
  for (std::size_t i = 0; i < attempt.workers().size(); ++i) {
    const Worker& worker = attempt.workers()[i];
    const auto& ended = worker.process.status();
    status.workers.push_back({.rank = worker.rank,
                              .local_rank = worker.local_rank,
                              .pid = worker.process.pid(),
                              .running = !ended,
                              .ending = ending_of(worker, stopped_by_lrun),
                              .last_line = last_line_of(logs, worker.local_rank),
                              .stopped = !ended && is_stopped(worker.process.pid()),
                              .quiet_ms = logs.quiet(worker.local_rank).value_or(Duration(-1)).count(),
                              .steps = steps_of(attempt.progress(i))});
  }
  return status;
}

AttemptText describe_start(const LaunchPlan& plan, const Attempt& attempt, const std::string& program,
                           const std::string& run_folder) {
  AttemptText words;
  const Membership& membership = attempt.membership();
  words.info.push_back(fmt::format("run {}: {} of {}, strategy {}, backend {}", plan.run_id,
                                   counted(attempt.workers().size(), "worker"), program, text_of(plan.strategy.value),
                                   text_of(plan.process_group_backend.value)));
  if (plan.rendezvous && plan.is_of_one_rank) {
    const NodePlan& node = plan.nodes.front();
    words.info.push_back(fmt::format("rank {} of {}, local rank {} of {} on node {} of {}, reached at {}",
                                     membership.self.node_rank, membership.world_size, node.workers.front().local_rank,
                                     node.local_world_size(), node.node_rank, plan.num_nodes, membership.self.address));
  } else if (plan.rendezvous) {
    words.info.push_back(fmt::format("node {} of {}, reached at {}; world size {}", membership.self.node_rank,
                                     membership.num_nodes, membership.self.address, membership.world_size));
  }
  words.info.push_back(fmt::format("store on {}:{}, {}", membership.master_addr, membership.master_port,
                                   run_folder.empty() ? "no run folder" : "run folder " + run_folder));
  for (const std::string& line : binding_lines(plan.nodes.front())) words.info.push_back(line);
  for (const Worker& worker : attempt.workers()) {
    words.debug.push_back(fmt::format("rank {} is pid {}", worker.rank, worker.process.pid()));
  }
  return words;
}

}  // namespace lrun::launcher
