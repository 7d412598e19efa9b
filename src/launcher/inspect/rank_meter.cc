// In: the processes of this machine, and what launchers say about their workers. Out: CPU time, memory and speed of
// each rank. Called by `lrun status`, which looks at /proc itself, so that a launcher of many workers need not, and by
// the parts of a launcher that keep or offer these numbers.
#include "inspect/rank_meter.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>

namespace lrun::launcher {
namespace {

constexpr int kMostAncestors = 64;

/// Of a process and those below it.
struct TreeUse {
  std::uint64_t cpu_ticks = 0;  ///< those of children that have ended, too
  std::uint64_t resident_pages = 0;
};

bool is_below(pid_t pid, pid_t ancestor, const ProcessTable& table) {
  for (int i = 0; i < kMostAncestors; ++i) {
    if (pid == ancestor) return true;
    const auto process = table.processes.find(pid);
    if (process == table.processes.end()) return false;
    pid = process->second.parent;
  }
  return false;
}

TreeUse use_of_tree(pid_t root, const ProcessTable& table, const std::multimap<pid_t, pid_t>& children) {
  TreeUse use;
  std::vector<pid_t> left{root};
  // /proc is not read at one moment: a pid that is used again meanwhile may make a circle.
  for (std::size_t i = 0; i < table.processes.size() && !left.empty(); ++i) {
    const pid_t pid = left.back();
    left.pop_back();
    const ProcessStat& stat = table.processes.at(pid);
    use.cpu_ticks += stat.ticks + stat.children_ticks;
    use.resident_pages += stat.resident_pages;
    const auto [first, last] = children.equal_range(pid);
    for (auto child = first; child != last; ++child) left.push_back(child->second);
  }
  return use;
}

/// Steps in 1000 seconds: between the last reports of two looks, or between the first report and the last one. The
/// longer the next report is missing, the slower is a rank.
std::int64_t speed(const StepsDone& now, const StepsDone& before, std::int64_t speed_before) {
  constexpr std::int64_t kMsInKs = 1'000'000;
  if (now.count == 0) return -1;
  std::int64_t steps_in_ks = speed_before;
  const bool goes_on = before.count > 0;
  const std::int64_t steps = now.count - (goes_on ? before.count : 1);
  const std::int64_t ms = now.took_ms - before.took_ms;
  if (steps > 0 && ms > 0) steps_in_ks = steps * kMsInKs / ms;
  constexpr std::int64_t kLongMs = 1000;
  return now.last_ms_ago < kLongMs ? steps_in_ks : std::min(steps_in_ks, kMsInKs / now.last_ms_ago);
}

std::int64_t milliseconds(std::uint64_t ticks, const ProcessTable& table) {
  return static_cast<std::int64_t>(ticks) * 1000 / table.ticks_per_second;
}

}  // namespace

ProcessTable read_process_table() {
  ProcessTable table;
  table.ticks_per_second = std::max(1L, ::sysconf(_SC_CLK_TCK));
  table.page_bytes = std::max(1L, ::sysconf(_SC_PAGESIZE));
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    const std::string_view name(entry->d_name);
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc()) continue;
    if (const auto stat = stat_of_process(pid)) table.processes[pid] = *stat;
  }
  timespec uptime{};
  ::clock_gettime(CLOCK_BOOTTIME, &uptime);
  table.uptime_ms = std::int64_t{uptime.tv_sec} * 1000 + uptime.tv_nsec / 1'000'000;
  return table;
}

void RankMeter::measure(RunStatus& status, const ProcessTable& now) {
  std::multimap<pid_t, pid_t> children;
  for (const auto& [pid, stat] : now.processes) children.emplace(stat.parent, pid);
  for (WorkerStatus& worker : status.workers) {
    const auto process = now.processes.find(worker.pid);
    if (!worker.running || process == now.processes.end() || !is_below(worker.pid, status.pid, now)) continue;
    const TreeUse use = use_of_tree(worker.pid, now, children);
    const std::uint64_t started = process->second.started_ticks;
    const std::int64_t started_ms = milliseconds(started, now);
    Seen& seen = seen_[worker.pid];
    if (seen.started_ticks != started || seen.uptime_ms == 0) seen = {started, started_ms, 0, {}, -1};
    const std::int64_t ms = now.uptime_ms - seen.uptime_ms;
    const std::uint64_t ticks = use.cpu_ticks - std::min(seen.cpu_ticks, use.cpu_ticks);
    worker.use.lived_ms = std::max<std::int64_t>(0, now.uptime_ms - started_ms);
    worker.use.cpu_ms = milliseconds(use.cpu_ticks, now);
    if (ms > 0) worker.use.cpu_percent = static_cast<int>(milliseconds(ticks, now) * 100 / ms);
    worker.use.resident_bytes = static_cast<std::int64_t>(use.resident_pages) * now.page_bytes;
    worker.use.steps_in_ks = speed(worker.steps, seen.steps, seen.steps_in_ks);
    seen = {started, now.uptime_ms, use.cpu_ticks, worker.steps, worker.use.steps_in_ks};
  }
}

std::vector<WorkerStatus> RankMeter::measure(pid_t launcher, const std::vector<RankProcess>& ranks) {
  RunStatus status{.pid = launcher};
  for (const RankProcess& process : ranks) status.workers.push_back({.rank = process.rank, .pid = process.pid});
  if (!ranks.empty()) measure(status, read_process_table());
  return std::move(status.workers);
}

}  // namespace lrun::launcher
