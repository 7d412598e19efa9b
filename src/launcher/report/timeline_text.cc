// In: a Timeline. Out: the text of `lrun report`. Pure.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "base/bytes_text.h"
#include "base/duration.h"
#include "base/rank_list.h"
#include "logs/terminal_text.h"
#include "report/status_text.h"
#include "report/timeline.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostLineCommandBytes = 200;
constexpr int kLast = std::numeric_limits<int>::max();

/// An event that several ranks had in common.
struct Happening {
  std::int64_t first_ms = 0;
  std::int64_t last_ms = 0;
  int order = 0;           ///< of the first, among what has the same time
  int round = -1;          ///< of ranks; -1: the run's own
  std::vector<int> ranks;  ///< empty: the run's own
  std::string what;
};

void add(std::vector<Happening>& happenings, const Milestone& came, int round, int rank) {
  const auto same = std::find_if(happenings.begin(), happenings.end(),
                                 [&](const Happening& one) { return one.round == round && one.what == came.what; });
  if (same == happenings.end()) {
    happenings.push_back({came.ms, came.ms, came.order, round, {rank}, came.what});
    return;
  }
  if (std::pair(came.ms, came.order) < std::pair(same->first_ms, same->order)) same->order = came.order;
  same->first_ms = std::min(same->first_ms, came.ms);
  same->last_ms = std::max(same->last_ms, came.ms);
  same->ranks.push_back(rank);
}

std::vector<Happening> happenings_of(const Timeline& timeline) {
  std::vector<Happening> happenings;
  for (const WorkerSpan& worker : timeline.workers) {
    const std::string spawned = worker.attempt == 0 ? "spawned" : fmt::format("spawned, attempt {}", worker.attempt);
    add(happenings, {worker.spawned_ms, spawned, worker.spawned_order}, worker.round, worker.rank);
    for (const Milestone& milestone : worker.milestones) add(happenings, milestone, worker.round, worker.rank);
    if (worker.ended_ms == 0) continue;
    add(happenings, {worker.ended_ms, worker.ending, worker.ended_order}, worker.round, worker.rank);
  }
  for (const Milestone& mark : timeline.marks_with_checkpoints()) {
    happenings.push_back({mark.ms, mark.ms, mark.order, -1, {}, mark.what});
  }
  if (timeline.ended_ms != 0) {
    const std::string end = fmt::format("the run ended: {}, exit code {}", timeline.reason, timeline.exit_code);
    happenings.push_back({timeline.ended_ms, timeline.ended_ms, kLast, -1, {}, end});
  }
  std::stable_sort(happenings.begin(), happenings.end(), [](const Happening& a, const Happening& b) {
    return std::pair(a.first_ms, a.order) < std::pair(b.first_ms, b.order);
  });
  return happenings;
}

std::string seconds(std::int64_t ms) { return fmt::format("{}.{:03}", ms / 1000, ms % 1000); }

std::string happening_line(const Happening& one, std::int64_t start) {
  const std::int64_t first = std::max<std::int64_t>(0, one.first_ms - start);
  const std::int64_t last = std::max<std::int64_t>(0, one.last_ms - start);
  const std::string until = last > first ? fmt::format(" – {}", seconds(last)) : "";
  const std::string who = one.ranks.empty() ? "" : ranks_text(one.ranks) + ": ";
  std::string line = fmt::format("  {:>9}{:<12}  {}{}", seconds(first), until, who, terminal_safe(one.what));
  return line + "\n";
}

}  // namespace

std::string utc_time(std::int64_t ms) {
  using namespace std::chrono;
  const sys_seconds time = floor<std::chrono::seconds>(sys_time<milliseconds>(milliseconds(ms)));
  const sys_days day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

std::string size_text(const Timeline& timeline) {
  if (timeline.world_size == 0) return "on other hosts";
  return fmt::format("world size {}, {}", timeline.world_size, timeline.strategy);
}

std::string timeline_text(const Timeline& timeline) {
  std::string text =
      fmt::format("run {}: {}: {}\nbegan {}", terminal_safe(timeline.run_id), terminal_safe(size_text(timeline)),
                  command_text(timeline.argv, kMostLineCommandBytes), utc_time(timeline.started_ms));
  if (timeline.ended_ms != 0) {
    const Duration took(std::max<std::int64_t>(0, timeline.ended_ms - timeline.started_ms));
    text += fmt::format(", took {}", format_elapsed(took));
  }
  if (const WorkerSpan* const largest = timeline.largest_worker()) {
    text += fmt::format(", peak memory {} (rank {})", kib_text(largest->peak_memory_kib), largest->rank);
  }
  text += "\n\n";
  for (const Happening& one : happenings_of(timeline)) text += happening_line(one, timeline.started_ms);
  return text;
}

}  // namespace lrun::launcher
