// In: the workers of a launcher, as `lrun status` knows them. Out: a table for people, with a line for each rank or for
// ranks that are alike. Pure. Called for the text of `lrun status`.
#include "report/rank_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/rank_list.h"
#include "base/shortened.h"
#include "base/without_numbers.h"
#include "logs/terminal_text.h"

namespace lrun::launcher {
namespace {

using Ranks = std::vector<const WorkerStatus*>;

constexpr std::size_t kMostLineColumns = 120;
constexpr std::size_t kMostRankColumns = 20;

/// 'running, low CPU'.
std::string state_of(const WorkerStatus& worker) {
  if (!worker.running) return worker.ending;
  const std::string state = worker.stopped ? "stopped" : "running";
  return worker.unusual.empty() ? state : state + ", " + worker.unusual;
}

bool simply_runs(const WorkerStatus& worker) { return worker.running && !worker.stopped && worker.unusual.empty(); }

/// \param part  of the larger one that they may differ by
bool near(std::int64_t one, std::int64_t other, std::int64_t difference, std::int64_t part) {
  if (one < 0 || other < 0) return one < 0 && other < 0;
  return std::abs(one - other) <= std::max(difference, std::max(one, other) / part);
}

constexpr std::int64_t kMiB = std::int64_t{1} << 20U;
constexpr std::int64_t kNearMiB = 64;
constexpr std::int64_t kNearPercent = 10;
constexpr std::int64_t kNearQuietMs = 5000;

bool use_about_as_much(const WorkerStatus& one, const WorkerStatus& other) {
  const auto same_gpu = [](const GpuUse& first, const GpuUse& second) {
    return near(first.memory_mib, second.memory_mib, kNearMiB, 10) &&
           near(first.percent, second.percent, kNearPercent, 10);
  };
  return near(one.quiet_ms, other.quiet_ms, kNearQuietMs, 2) &&
         near(one.use.cpu_percent, other.use.cpu_percent, kNearPercent, 10) &&
         near(one.use.resident_bytes, other.use.resident_bytes, kNearMiB * kMiB, 10) &&
         near(one.use.steps_in_ks, other.use.steps_in_ks, 0, 10) &&
         std::equal(one.gpus.begin(), one.gpus.end(), other.gpus.begin(), other.gpus.end(), same_gpu);
}

bool share_a_line(const WorkerStatus& one, const WorkerStatus& other, RankFold fold) {
  if (fold == RankFold::kNone || state_of(one) != state_of(other)) return false;
  if (fold == RankFold::kState) return without_numbers(one.last_line) == without_numbers(other.last_line);
  return one.last_line == other.last_line && use_about_as_much(one, other);
}

std::vector<Ranks> folded(const std::vector<WorkerStatus>& workers, RankFold fold) {
  std::vector<Ranks> rows;
  for (const WorkerStatus& worker : workers) {
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const Ranks& ranks) { return share_a_line(*ranks.front(), worker, fold); });
    if (row != rows.end()) {
      row->push_back(&worker);
    } else {
      rows.push_back({&worker});
    }
  }
  if (fold == RankFold::kState) {
    std::stable_partition(rows.begin(), rows.end(), [](const Ranks& ranks) { return !simply_runs(*ranks.front()); });
  }
  return rows;
}

/// '1.2-1.4G': the unit, which is the last letter, stands once.
std::string range_text(const std::string& low, const std::string& high) {
  if (low == high) return low;
  const bool has_unit = low.back() == high.back() && (low.back() < '0' || low.back() > '9');
  return (has_unit ? low.substr(0, low.size() - 1) : low) + "-" + high;
}

using Form = std::string (*)(std::int64_t value);

/// '-' where nothing is known.
std::string range_of(const std::vector<std::int64_t>& values, Form form) {
  std::int64_t low = -1;
  std::int64_t high = -1;
  for (const std::int64_t value : values) {
    if (value < 0) continue;
    low = low < 0 ? value : std::min(low, value);
    high = std::max(high, value);
  }
  return low < 0 ? "-" : range_text(form(low), form(high));
}

/// '59s', '12m', '3h', '2d'.
std::string age_text(std::int64_t ms) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  const std::int64_t seconds = ms / 1000;
  if (seconds < kMinute) return fmt::format("{}s", seconds);
  if (seconds < kHour) return fmt::format("{}m", seconds / kMinute);
  return seconds < kDay ? fmt::format("{}h", seconds / kHour) : fmt::format("{}d", seconds / kDay);
}

std::string percent_text(std::int64_t percent) { return fmt::format("{}%", percent); }

/// '812M', '1.2G', '34G'.
std::string mib_text(std::int64_t mib) {
  constexpr std::int64_t kGiB = 1024;
  if (mib < 1000) return fmt::format("{}M", mib);
  const std::int64_t tenths = mib * 10 / kGiB;
  return tenths < 100 ? fmt::format("{}.{}G", tenths / 10, tenths % 10) : fmt::format("{}G", tenths / 10);
}

/// '0.25', '4.20', '12.5', '120'
std::string speed_text(std::int64_t steps_in_ks) {
  if (steps_in_ks < 10'000) return fmt::format("{}.{:02}", steps_in_ks / 1000, steps_in_ks % 1000 / 10);
  if (steps_in_ks < 100'000) return fmt::format("{}.{}", steps_in_ks / 1000, steps_in_ks % 1000 / 100);
  return fmt::format("{}", steps_in_ks / 1000);
}

std::vector<std::int64_t> values_of(const Ranks& ranks, std::int64_t (*value)(const WorkerStatus&)) {
  std::vector<std::int64_t> values;
  for (const WorkerStatus* rank : ranks) values.push_back(value(*rank));
  return values;
}

std::vector<std::int64_t> gpu_values(const Ranks& ranks, int GpuUse::*value) {
  std::vector<std::int64_t> values;
  for (const WorkerStatus* rank : ranks) {
    for (const GpuUse& gpu : rank->gpus) values.push_back(gpu.*value);
  }
  return values;
}

std::string gpus_of(const Ranks& ranks) {
  std::vector<int> gpus;
  for (const std::int64_t gpu : gpu_values(ranks, &GpuUse::gpu)) gpus.push_back(static_cast<int>(gpu));
  return gpus.empty() ? "-" : shortened(format_rank_list(gpus), kMostRankColumns);
}

struct Column {
  const char* name;
  std::string (*cell)(const Ranks& ranks);
};

constexpr Column kColumns[] = {
    {"RANK",
     [](const Ranks& ranks) {
       std::vector<int> numbers;
       for (const WorkerStatus* rank : ranks) numbers.push_back(rank->rank);
       return shortened(format_rank_list(numbers), kMostRankColumns);
     }},
    {"STATE", [](const Ranks& ranks) { return terminal_safe(state_of(*ranks.front())); }},
    {"QUIET",
     [](const Ranks& ranks) {
       return range_of(values_of(ranks, [](const WorkerStatus& rank) { return rank.running ? rank.quiet_ms : -1; }),
                       age_text);
     }},
    {"CPU",
     [](const Ranks& ranks) {
       return range_of(values_of(ranks, [](const WorkerStatus& rank) { return std::int64_t{rank.use.cpu_percent}; }),
                       percent_text);
     }},
    {"MEMORY",
     [](const Ranks& ranks) {
       return range_of(values_of(ranks,
                                 [](const WorkerStatus& rank) {
                                   return rank.use.resident_bytes < 0 ? -1 : rank.use.resident_bytes / kMiB;
                                 }),
                       mib_text);
     }},
    {"GPU", gpus_of},
    {"GPU MEM", [](const Ranks& ranks) { return range_of(gpu_values(ranks, &GpuUse::memory_mib), mib_text); }},
    {"GPU%", [](const Ranks& ranks) { return range_of(gpu_values(ranks, &GpuUse::percent), percent_text); }},
    {"STEPS/S",
     [](const Ranks& ranks) {
       return range_of(values_of(ranks, [](const WorkerStatus& rank) { return rank.use.steps_in_ks; }), speed_text);
     }},
    {"LAST LINE",
     [](const Ranks& ranks) {
       std::string line = terminal_safe(ranks.front()->last_line);
       std::replace(line.begin(), line.end(), '\t', ' ');  // its width depends on where it stands
       return shortened(line, kMostLineColumns);
     }},
};

/// Characters as a terminal counts them; at most that of wide ones.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80; }));
}

}  // namespace

std::vector<std::string> rank_table(const std::vector<WorkerStatus>& workers, RankFold fold) {
  const std::vector<Ranks> rows = folded(workers, fold);
  std::vector<std::string> lines(rows.empty() ? 0 : rows.size() + 1);
  for (const Column& column : kColumns) {
    std::vector<std::string> cells{column.name};
    for (const Ranks& ranks : rows) cells.push_back(column.cell(ranks));
    const bool known = std::any_of(cells.begin() + 1, cells.end(),
                                   [](const std::string& cell) { return !cell.empty() && cell != "-"; });
    if (!known) continue;
    std::size_t width = 0;
    for (const std::string& cell : cells) width = std::max(width, width_of(cell));
    for (std::size_t i = 0; i < lines.size(); ++i) {
      lines[i] += "  " + cells[i] + std::string(width - width_of(cells[i]), ' ');
    }
  }
  for (std::string& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  return lines;
}

}  // namespace lrun::launcher
