// In: pieces of the workers' lines. Out: whole lines on one console, with prefixes, folded, and progress bars as live
// lines. LogRouter has one for each console.
#include "logs/line_presenter.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "logs/rank_prefix.h"
#include "logs/terminal_text.h"

namespace lrun::launcher {
namespace {

constexpr Duration kFoldWindow(250);
/// Marks lines of a folder among the console's writers.
constexpr int kFolded = -3;

/// Whether a '\r' stands in the line, other than as part of its end.
bool redraws(std::string_view piece) {
  const std::size_t at = piece.find('\r');
  return at != std::string_view::npos && piece.substr(at) != "\r\n";
}

}  // namespace

LinePresenter::LinePresenter(EventLoop& loop, Console& console, const LogOptions& options)
    : loop_(loop),
      console_(console),
      options_(options),
      terminal_(console.descriptor().terminal()),
      tidy_(options.prefix && terminal_),
      live_lines_(options.live && (tidy_ || ((options.interactive || options.one_rank) && terminal_))),
      plain_(!tidy_ && !options.fold && !options.timestamps),
      waits_(!terminal_ && !options.timestamps) {
  if (options.fold) folder_.emplace(kFoldWindow, waits_);
}

void LinePresenter::note_time() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  time_ = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03} ", parts.tm_year + 1900, parts.tm_mon + 1,
                      parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, milliseconds);
}

void LinePresenter::append(LogSource& source, std::string_view piece) {
  // The order of arrival.
  if (folder_) show(waits_ ? folder_->show_all() : folder_->show(std::chrono::steady_clock::now()));
  screen_.forget();
  if (time_.empty()) {
    console_.append(source.writer, source.prefix, piece);
  } else {
    scratch_.assign(time_).append(source.prefix);
    console_.append(source.writer, scratch_, piece);
  }
}

void LinePresenter::arrange(LogSource& source, std::string_view piece) {
  std::string drawing;
  if (tidy_ && (!source.drawing.empty() || redraws(piece))) {
    source.drawing.append(piece);
    source.drawing.erase(0, source.drawing.size() - drawn_last(source.drawing).size());
    // A bar that does not end its line is only shown as the live line.
    if (piece.back() != '\n' && source.drawing.size() <= LineSplitter::kLongestHeld) return;
    drawing = std::exchange(source.drawing, {});
    piece = drawing;
  }
  const bool whole = piece.back() == '\n' && !source.line_open;
  source.line_open = piece.back() != '\n';
  if (folder_ && whole && piece.size() <= LineFolder::kLongestLine) {
    folder_->take(source.rank, piece);
    if (folder_->full()) show(folder_->show(std::chrono::steady_clock::now()));
  } else {
    append(source, piece);
  }
}

void LinePresenter::finish(LogSource& source, std::string_view rest) {
  bars_.erase(source.writer);
  if (!rest.empty() || !source.drawing.empty()) {
    // The console would end the line in any case; ended here, it is folded like any other.
    arrange(source, std::string(rest) + "\n");
  }
  console_.end_line(source.writer);
}

std::string LinePresenter::prefix_of(const std::vector<int>& ranks, bool colour) const {
  if (ranks.size() == 1) return rank_prefix(ranks.front(), options_.rank_width, colour);
  return colour ? "\x1b[1m[" + rank_ranges(ranks) + "]\x1b[0m " : "[" + rank_ranges(ranks) + "] ";
}

void LinePresenter::show(const std::vector<LineFolder::Output>& lines) {
  if (lines.empty()) return;
  if (console_.lines() != lines_seen_) screen_.forget();
  if (const std::string sequences = redrawn(lines); !sequences.empty()) {
    console_.redraw(sequences);
    return;
  }
  const ConsoleDescriptor::Size size = terminal_ ? console_.descriptor().size() : ConsoleDescriptor::Size{};
  for (const LineFolder::Output& line : lines) {
    console_.append(kFolded, time_ + prefix_of(line.ranks, options_.colour && terminal_), line.text);
    if (!terminal_) continue;
    const std::string_view text = std::string_view(line.text).substr(0, line.text.size() - 1);
    screen_.wrote(line.id, time_ + prefix_of(line.ranks, false).append(text), size);
  }
  lines_seen_ = console_.lines();
}

/// Later copies of lines that still stand at the end of the terminal are added to them. Not where a person types there,
/// where another program draws, or where the time of the first copy is shown.
std::string LinePresenter::redrawn(const std::vector<LineFolder::Output>& lines) const {
  if (!terminal_ || options_.interactive || !options_.live || options_.timestamps || console_.queued_bytes() > 0)
    return {};
  std::vector<FoldedScreen::Line> redrawn;
  for (const LineFolder::Output& line : lines) {
    if (!line.again) return {};
    const std::string_view text = std::string_view(line.text).substr(0, line.text.size() - 1);
    redrawn.push_back(
        {line.id, prefix_of(line.all, false).append(text), prefix_of(line.all, options_.colour).append(text)});
  }
  return screen_.redraw(redrawn, console_.descriptor().size());
}

void LinePresenter::end_turn() {
  if (folder_) {
    show(folder_->show(std::chrono::steady_clock::now()));
    arm();
  }
  console_.write_out();
  if (!live_lines_) return;
  console_.set_live_line(bars_.empty() ? std::string() : bars_.begin()->second);
  console_.write_out();
}

void LinePresenter::arm() {
  const auto next = folder_->next();
  if (!next || window_.armed()) return;
  const auto wait = std::chrono::ceil<Duration>(*next - std::chrono::steady_clock::now());
  window_ = loop_.after(std::max(wait, Duration(0)), [this] { show_due(); });
}

void LinePresenter::show_due() {
  if (options_.timestamps) note_time();
  end_turn();
}

void LinePresenter::show_all() {
  window_.cancel();
  if (folder_) show(folder_->show_all());
}

void LinePresenter::follow_live(LogSource& source) {
  const std::string_view unfinished = source.lines.held();
  const bool bar = (tidy_ || options_.one_rank) && unfinished.find('\r') != std::string_view::npos;
  const bool question = options_.interactive && source.rank == 0 && !unfinished.empty();
  if (!bar && !question) {
    bars_.erase(source.writer);
    return;
  }
  bars_[source.writer] =
      source.prefix + fitted(drawn_last(unfinished),
                             console_.descriptor().size().columns - static_cast<int>(source.plain_prefix.size()) - 1);
}

}  // namespace lrun::launcher
