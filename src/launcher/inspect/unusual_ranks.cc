#include "inspect/unusual_ranks.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

namespace lrun::launcher {
namespace {

using Ranks = std::vector<WorkerStatus*>;

constexpr std::size_t kFewestRanks = 3;
constexpr std::int64_t kFirstMs = 30'000;  ///< of a process: imports and the first batches

/// Of an even number the lower one. \param values  at least one
std::int64_t median_of(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

using Value = std::function<std::int64_t(const WorkerStatus&)>;  ///< -1: unknown
using Judge = std::function<std::string(std::int64_t value, std::int64_t median)>;

void mark_by(const Ranks& ranks, const Value& value_of, const Judge& judge) {
  std::vector<std::int64_t> values;
  for (const WorkerStatus* rank : ranks) {
    if (value_of(*rank) >= 0) values.push_back(value_of(*rank));
  }
  if (values.size() < kFewestRanks) return;
  const std::int64_t median = median_of(values);
  const auto words_for = [&](const WorkerStatus& rank) {
    return value_of(rank) < 0 ? std::string() : judge(value_of(rank), median);
  };
  const auto count = static_cast<std::size_t>(
      std::count_if(ranks.begin(), ranks.end(), [&](const WorkerStatus* rank) { return !words_for(*rank).empty(); }));
  if (count > std::max<std::size_t>(1, values.size() / 4)) return;
  for (WorkerStatus* rank : ranks) {
    const std::string words = words_for(*rank);
    if (!words.empty()) rank->unusual += (rank->unusual.empty() ? "" : ", ") + words;
  }
}

std::string quiet_words(std::int64_t quiet_ms, std::int64_t median) {
  constexpr std::int64_t kTimes = 4;
  return quiet_ms >= kFirstMs && quiet_ms / kTimes > median ? "quiet" : "";
}

std::string cpu_words(std::int64_t percent, std::int64_t median) {
  constexpr std::int64_t kPoints = 40;
  if (std::abs(percent - median) <= std::max(kPoints, median / 2)) return "";
  return percent < median ? "low CPU" : "high CPU";
}

}  // namespace

void mark_unusual(std::vector<RunStatus>& runs) {
  std::map<std::string, Ranks> running;  // the ranks of a job may have a launcher each
  for (RunStatus& run : runs) {
    for (WorkerStatus& worker : run.workers) {
      if (worker.running && !worker.stopped) running[run.run_id].push_back(&worker);
    }
  }
  for (const auto& [id, ranks] : running) {
    const auto is_new = [](const WorkerStatus* rank) { return rank->use.lived_ms < kFirstMs; };
    if (ranks.size() < kFewestRanks || std::any_of(ranks.begin(), ranks.end(), is_new)) continue;
    mark_by(
        ranks, [](const WorkerStatus& rank) { return rank.quiet_ms; }, quiet_words);
    mark_by(
        ranks, [](const WorkerStatus& rank) { return std::int64_t{rank.use.cpu_percent}; }, cpu_words);
  }
}

}  // namespace lrun::launcher
