// In: a Timeline. Out: its plot as SVG, for the HTML page. Pure.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "report/plot_axis.h"
#include "report/timeline_html.h"

namespace lrun::launcher {
namespace {

constexpr double kWidth = 1000;
constexpr double kLeft = 70;  // for the names of the ranks
constexpr double kRight = 20;
constexpr double kTop = 46;  // for the marks of the run
constexpr double kBottom = 34;
constexpr double kMostHeight = 900;
constexpr double kTallRow = 22;
constexpr double kFlatRow = 4;
constexpr double kReadableRow = 12;
constexpr double kLetter = 6.4;  // width of a letter of a mark

class Plot {
 public:
  explicit Plot(const Timeline& timeline)
      : timeline_(timeline),
        names_(timeline.milestone_names()),
        start_(timeline.started_ms),
        span_(static_cast<double>(std::max<std::int64_t>(1, timeline.last_ms() - timeline.started_ms))) {
    std::vector<int> ranks;
    for (const WorkerSpan& worker : timeline.workers) ranks.push_back(worker.rank);
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    for (std::size_t i = 0; i < ranks.size(); ++i) rows_[ranks[i]] = static_cast<double>(i);
    const double rows = std::max<double>(1, static_cast<double>(ranks.size()));
    row_height_ = std::clamp(kMostHeight / rows, kFlatRow, kTallRow);
    plot_height_ = rows * row_height_;
  }

  [[nodiscard]] std::string svg() const {
    const double height = kTop + plot_height_ + kBottom;
    return fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {:.0f} {:.0f}" role="img" )"
                       R"(aria-label="timeline of all ranks">{})",
                       kWidth, height, '\n') +
           axis() + rank_names() + bars() + marks() + "</svg>\n";
  }

 private:
  [[nodiscard]] double x_of(std::int64_t ms) const {
    const double part = std::clamp(static_cast<double>(ms - start_) / span_, 0.0, 1.0);
    return kLeft + part * (kWidth - kLeft - kRight);
  }
  [[nodiscard]] double y_of(int rank) const { return kTop + rows_.at(rank) * row_height_; }

  [[nodiscard]] std::string axis() const {
    const double step = time_step(span_, 10);
    const double bottom = kTop + plot_height_;
    std::string text;
    for (double at = 0; at <= span_; at += step) {
      const double x = x_of(start_ + static_cast<std::int64_t>(at));
      text +=
          fmt::format(R"(<line class="grid" x1="{0:.1f}" y1="{1:.1f}" x2="{0:.1f}" y2="{2:.1f}"/>)", x, kTop, bottom);
      text += fmt::format(R"(<text class="tick" x="{:.1f}" y="{:.1f}">{}</text>{})", x, bottom + 16,
                          time_name(at, step), '\n');
    }
    return text;
  }

  /// Every rank's, or as many as can be read.
  [[nodiscard]] std::string rank_names() const {
    const auto every = static_cast<std::size_t>((kReadableRow + row_height_ - 1) / row_height_);
    std::string text;
    std::size_t row = 0;
    for (const auto& [rank, at] : rows_) {
      if (row++ % every != 0) continue;
      text += fmt::format(R"(<text class="rank" x="{:.1f}" y="{:.1f}">rank {}</text>{})", kLeft - 8,
                          y_of(rank) + row_height_ / 2 + 4, rank, '\n');
    }
    return text;
  }

  [[nodiscard]] std::string bars() const {
    std::string text;
    for (const WorkerSpan& worker : timeline_.workers) text += bar(worker);
    return text;
  }

  static std::string_view class_of(WorkerSpan::Fate fate) {
    switch (fate) {
      case WorkerSpan::Fate::kSucceeded:
        return "succeeded";
      case WorkerSpan::Fate::kFailed:
        return "failed";
      case WorkerSpan::Fate::kStopped:
        return "stopped";
      case WorkerSpan::Fate::kRunning:
        break;
    }
    return "running";
  }

  [[nodiscard]] std::string bar(const WorkerSpan& worker) const {
    const std::int64_t end = worker.ended_ms != 0 ? worker.ended_ms : timeline_.last_ms();
    const double gap = row_height_ > 8 ? 3 : 0.5;
    const double y = y_of(worker.rank) + gap;
    const double height = row_height_ - 2 * gap;
    std::string text = fmt::format("<g><title>{}</title>", escape_html(tooltip(worker)));
    std::vector<Milestone> milestones = worker.milestones;
    std::sort(milestones.begin(), milestones.end(), [](const auto& a, const auto& b) { return a.ms < b.ms; });
    std::int64_t from = worker.spawned_ms;
    std::size_t shade = 0;
    for (const Milestone& milestone : milestones) {
      if (milestone.ms < from || milestone.ms > end) continue;
      text += piece(from, milestone.ms, y, height, shade);
      from = milestone.ms;
      shade = shade_after(milestone.what);
    }
    text += piece(from, end, y, height, shade);
    if (worker.ended_ms != 0) {
      text += fmt::format(R"(<rect class="{}" x="{:.1f}" y="{:.1f}" width="5" height="{:.1f}"/>)",
                          class_of(worker.fate), x_of(end) - 2.5, y, height);
    }
    return text + "</g>\n";
  }

  /// The same milestone has the same shade in every row.
  [[nodiscard]] std::size_t shade_after(const std::string& milestone) const {
    const auto found = std::find(names_.begin(), names_.end(), milestone);
    constexpr std::ptrdiff_t kMostShade = 3;
    return static_cast<std::size_t>(std::min(found - names_.begin() + 1, kMostShade));
  }

  [[nodiscard]] std::string piece(std::int64_t from, std::int64_t to, double y, double height,
                                  std::size_t shade) const {
    return fmt::format(R"(<rect class="part{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>)", shade,
                       x_of(from), y, std::max(1.0, x_of(to) - x_of(from)), height);
  }

  [[nodiscard]] std::string tooltip(const WorkerSpan& worker) const {
    const auto seconds = [&](std::int64_t ms) { return static_cast<double>(ms - start_) / 1000; };
    std::string text = fmt::format("rank {}, attempt {}, pid {}\nspawned at {:.3f} s", worker.rank, worker.attempt,
                                   worker.pid, seconds(worker.spawned_ms));
    for (const Milestone& milestone : worker.milestones) {
      text += fmt::format("\n{} at {:.3f} s", milestone.what, seconds(milestone.ms));
    }
    if (worker.ended_ms != 0) text += fmt::format("\n{} at {:.3f} s", worker.ending, seconds(worker.ended_ms));
    return text;
  }

  /// Names stand in two lines above the plot; one that would cover another is left to its tooltip.
  [[nodiscard]] std::string marks() const {
    std::string text;
    std::array<double, 2> free_from{0, 0};
    for (const Milestone& mark : timeline_.marks_with_checkpoints()) {
      const double x = x_of(mark.ms);
      const double width = static_cast<double>(mark.what.size()) * kLetter;
      const bool to_left = x + width > kWidth - kRight;
      const double begin = to_left ? x - width : x;
      text += fmt::format(R"(<g><title>{}</title><line class="mark" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)",
                          escape_html(mark.what), x, kTop - 6, x, kTop + plot_height_);
      for (std::size_t line = 0; line < free_from.size(); ++line) {
        if (begin < free_from[line]) continue;
        free_from[line] = begin + width + 10;
        text += fmt::format(R"(<text class="mark{}" x="{:.1f}" y="{:.1f}">{}</text>)", to_left ? " left" : "", x,
                            kTop - 10 - 14 * static_cast<double>(line), escape_html(mark.what));
        break;
      }
      text += "</g>\n";
    }
    return text;
  }

  const Timeline& timeline_;
  std::vector<std::string> names_;  ///< of milestones
  std::int64_t start_;
  double span_;
  std::map<int, double> rows_;
  double row_height_ = 0;
  double plot_height_ = 0;
};

}  // namespace

std::string timeline_svg(const Timeline& timeline) { return Plot(timeline).svg(); }

}  // namespace lrun::launcher
