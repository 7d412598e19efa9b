// In: a Timeline with samples of what its ranks used. Out: the charts of memory and CPU for the HTML page. Pure.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/plot_axis.h"
#include "report/timeline_html.h"

namespace lrun::launcher {
namespace {

constexpr double kChartWidth = 480;
constexpr double kChartHeight = 210;
constexpr double kChartLeft = 66;  // for the values
constexpr double kChartRight = 16;
constexpr double kChartTop = 10;
constexpr double kChartBottom = 28;     // for the times
constexpr std::size_t kMostCurves = 8;  // that can be told apart
constexpr std::size_t kColumns = 200;   // of the band that stands for more ranks
constexpr int kMostTimes = 6;
constexpr int kMostValues = 5;

struct Point {
  std::int64_t ms = 0;
  double value = 0;
};
using Points = std::vector<Point>;

/// The quantity that a chart shows.
struct Metric {
  std::string_view caption;
  double (*value)(const UsageSample& sample);
  bool begins_with_none;  ///< a process that has just been started uses none of it
  double least_top;       ///< of the axis
  double first_step;
  double (*unit)(double most);  ///< in which the axis counts
  std::string (*name)(double value, double unit, double step);
};

/// KiB in one KiB, MiB, GiB or TiB.
double memory_unit(double most_kib) {
  double unit = 1;
  while (most_kib / unit >= 1024 && unit < 1024.0 * 1024 * 1024) unit *= 1024;
  return unit;
}

std::string memory_name(double value, double unit, double step) {
  const std::string_view suffix = unit == 1 ? "KiB" : unit == 1024 ? "MiB" : unit == 1024.0 * 1024 ? "GiB" : "TiB";
  return fmt::format("{:.{}f} {}", value, step < 1 ? 1 : 0, suffix);
}

constexpr std::array<Metric, 2> kMetrics{{
    {"Memory of each rank", [](const UsageSample& sample) { return static_cast<double>(sample.memory_kib); }, true, 1,
     0.1, memory_unit, memory_name},
    {"CPU of each rank, in percent of one core",
     [](const UsageSample& sample) { return static_cast<double>(sample.cpu_percent); }, false, 100, 10,
     [](double) { return 1.0; }, [](double value, double, double) { return fmt::format("{:.0f} %", value); }},
}};

/// The samples of one start of a rank. The first one tells of all the time before it.
Points points_of(const WorkerSpan& worker, const Metric& metric) {
  Points points;
  for (const UsageSample& sample : worker.usage) points.push_back({sample.ms, metric.value(sample)});
  std::stable_sort(points.begin(), points.end(), [](const Point& one, const Point& two) { return one.ms < two.ms; });
  if (points.empty() || points.front().ms <= worker.spawned_ms) return points;
  points.insert(points.begin(), {worker.spawned_ms, metric.begins_with_none ? 0 : points.front().value});
  return points;
}

/// The ranks that have samples, in order.
std::vector<int> sampled_ranks(const Timeline& timeline) {
  std::vector<int> ranks;
  for (const WorkerSpan& worker : timeline.workers) {
    if (!worker.usage.empty()) ranks.push_back(worker.rank);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

/// One chart: a line for each rank, or for many ranks a band from the least to the most with a line for the median,
/// and one for the rank to blame.
class Chart {
 public:
  Chart(const Timeline& timeline, const std::vector<int>& ranks, const Metric& metric)
      : timeline_(timeline),
        ranks_(ranks),
        metric_(metric),
        start_(timeline.started_ms),
        span_(static_cast<double>(std::max<std::int64_t>(1, timeline.last_ms() - timeline.started_ms))) {
    double most = metric.least_top;
    for (const WorkerSpan& worker : timeline.workers) {
      for (const UsageSample& sample : worker.usage) most = std::max(most, metric.value(sample));
    }
    unit_ = metric.unit(most);
    step_ = axis_step(most / unit_, kMostValues, metric.first_step);
    while (top_ < most / unit_) top_ += step_;
  }

  [[nodiscard]] std::string svg() const {
    std::string text = fmt::format(
        R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">{})",
        kChartWidth, kChartHeight, metric_.caption, '\n');
    text += axes();
    if (ranks_.size() > kMostCurves) text += band();
    // The rank to blame last: nothing covers it.
    for (const bool blamed : {false, true}) {
      for (const WorkerSpan& worker : timeline_.workers) {
        const bool is_drawn = ranks_.size() <= kMostCurves || blamed;
        if (is_drawn && (worker.rank == timeline_.culprit) == blamed) text += line(worker);
      }
    }
    return text + "</svg>\n";
  }

 private:
  [[nodiscard]] double x_of(double ms) const {
    return kChartLeft + std::clamp(ms / span_, 0.0, 1.0) * (kChartWidth - kChartLeft - kChartRight);
  }
  [[nodiscard]] double x_of(std::int64_t ms) const { return x_of(static_cast<double>(ms - start_)); }
  /// \param value  in the unit of the axis
  [[nodiscard]] double y_of(double value) const {
    return kChartHeight - kChartBottom - value / top_ * (kChartHeight - kChartTop - kChartBottom);
  }

  [[nodiscard]] std::string axes() const {
    std::string text;
    for (int i = 0; i <= kMostValues && step_ * i <= top_; ++i) {
      const double y = y_of(step_ * i);
      text += fmt::format(R"(<line class="grid" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)", kChartLeft, y,
                          kChartWidth - kChartRight, y);
      text += fmt::format(R"(<text class="value" x="{:.1f}" y="{:.1f}">{}</text>{})", kChartLeft - 8, y + 4,
                          metric_.name(step_ * i, unit_, step_), '\n');
    }
    const double step = time_step(span_, kMostTimes);
    for (double at = 0; at <= span_; at += step) {
      text += fmt::format(R"(<text class="tick" x="{:.1f}" y="{:.1f}">{}</text>{})", x_of(at), kChartHeight - 8,
                          time_name(at, step), '\n');
    }
    return text;
  }

  /// Of several samples that share a place the largest is drawn.
  [[nodiscard]] std::string line(const WorkerSpan& worker) const {
    std::map<int, Point> drawn;
    for (const Point& point : points_of(worker, metric_)) {
      const auto [at, is_new] = drawn.try_emplace(static_cast<int>(x_of(point.ms)), point);
      if (!is_new && at->second.value < point.value) at->second = point;
    }
    if (drawn.empty()) return {};
    std::string places;
    for (const auto& [column, point] : drawn) {
      places += fmt::format("{:.1f},{:.1f} ", x_of(point.ms), y_of(point.value / unit_));
    }
    places.pop_back();
    return fmt::format(
        "<polyline class=\"use\" style=\"stroke: var(--{})\" points=\"{}\"><title>rank {}</title></polyline>\n",
        colour_of(worker.rank), places, worker.rank);
  }

  [[nodiscard]] std::string colour_of(int rank) const {
    if (rank == timeline_.culprit) return "failed";
    return fmt::format("rank{}", std::lower_bound(ranks_.begin(), ranks_.end(), rank) - ranks_.begin());
  }

  /// The values of all ranks that ran at the time of each column.
  [[nodiscard]] std::vector<std::vector<double>> columns() const {
    std::vector<std::vector<double>> values(kColumns);
    for (const WorkerSpan& worker : timeline_.workers) {
      const Points points = points_of(worker, metric_);
      auto next = points.begin();
      for (std::size_t column = 0; column < kColumns; ++column) {
        const double ms = time_of(column);
        while (next != points.end() && static_cast<double>(next->ms - start_) < ms) ++next;
        const bool has_begun = static_cast<double>(worker.spawned_ms - start_) <= ms;
        if (next != points.end() && has_begun) values[column].push_back(next->value);
      }
    }
    return values;
  }
  [[nodiscard]] double time_of(std::size_t column) const {
    return span_ * static_cast<double>(column) / static_cast<double>(kColumns - 1);
  }

  /// Interrupted where no rank ran.
  [[nodiscard]] std::string band() const {
    std::string text;
    std::string most;
    std::string median;
    std::vector<std::string> least;
    const auto draw = [&] {
      std::reverse(least.begin(), least.end());
      for (const std::string& place : std::exchange(least, {})) most += place;
      if (most.empty()) return;
      text += fmt::format("<polygon class=\"band\" points=\"{}\"/>\n", std::exchange(most, {}));
      text += fmt::format("<polyline class=\"use\" style=\"stroke: var(--part3)\" points=\"{}\"/>\n",
                          std::exchange(median, {}));
    };
    std::vector<std::vector<double>> all = columns();
    for (std::size_t column = 0; column < kColumns; ++column) {
      std::vector<double>& values = all[column];
      if (values.empty()) {
        draw();
        continue;
      }
      std::sort(values.begin(), values.end());
      const auto place = [&](double value) {
        return fmt::format("{:.1f},{:.1f} ", x_of(time_of(column)), y_of(value / unit_));
      };
      most += place(values.back());
      median += place(values[values.size() / 2]);
      least.push_back(place(values.front()));
    }
    draw();
    return text;
  }

  const Timeline& timeline_;
  const std::vector<int>& ranks_;
  const Metric& metric_;
  std::int64_t start_;
  double span_;
  double unit_ = 1;
  double step_ = 1;
  double top_ = 0;  ///< of the axis, in its unit
};

std::string usage_key(const Timeline& timeline, const std::vector<int>& ranks) {
  std::string text;
  if (ranks.size() > kMostCurves) {
    text += plot_key("part3", "median of all ranks") + plot_key("band", "from the lowest to the highest");
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == timeline.culprit) {
      text += plot_key("failed", fmt::format("rank {}, to blame", ranks[i]));
    } else if (ranks.size() <= kMostCurves) {
      text += plot_key(fmt::format("rank{}", i), fmt::format("rank {}", ranks[i]));
    }
  }
  return text;
}

}  // namespace

std::string usage_html(const Timeline& timeline) {
  const std::vector<int> ranks = sampled_ranks(timeline);
  if (ranks.empty()) return {};
  std::string text = "<h2>Memory and CPU</h2>\n<div class=\"charts\">\n";
  for (const Metric& metric : kMetrics) {
    text += fmt::format("<figure><figcaption>{}</figcaption>\n{}</figure>\n", metric.caption,
                        Chart(timeline, ranks, metric).svg());
  }
  return text + "</div>\n<p class=\"quiet\">" + usage_key(timeline, ranks) +
         "</p>\n<p class=\"quiet\">With the processes that each rank started; memory that they share counts for "
         "each.</p>\n";
}

}  // namespace lrun::launcher
