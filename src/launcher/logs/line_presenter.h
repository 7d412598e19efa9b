#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/event_loop.h"
#include "logs/console.h"
#include "logs/folded_screen.h"
#include "logs/line_folder.h"
#include "logs/log_options.h"
#include "logs/log_worker.h"

namespace lrun::launcher {

/// Gives one console the lines of its sources as they are to look there: prefixes, folding, times, progress bars.
///
/// A line that redraws itself with '\r' is shown on a terminal as it stands at its end, and until then the bar of one
/// rank, the lowest that draws one, is live below all lines. Elsewhere, and in raw modes, lines are what was written.
class LinePresenter {
 public:
  LinePresenter(EventLoop& loop, Console& console, const LogOptions& options);
  LinePresenter(const LinePresenter&) = delete;
  LinePresenter& operator=(const LinePresenter&) = delete;
  ~LinePresenter() = default;

  /// Bytes were read from a source: what follows until the next call came now.
  void begin_read() {
    if (options_.timestamps) note_time();
  }
  /// A piece of a source's line, as LineSplitter gives it.
  void take(LogSource& source, std::string_view piece) {
    if (plain_) {
      console_.append(source.writer, source.prefix, piece);
    } else {
      arrange(source, piece);
    }
  }
  /// All pieces of this read were taken; the source holds its unfinished line.
  void end_read(LogSource& source) {
    if (live_lines_) follow_live(source);
  }
  /// The last piece of a source, and its end.
  void finish(LogSource& source, std::string_view rest);
  /// Everything that was readable was taken: writes it out.
  void end_turn();
  /// Shows what is held back.
  void show_all();

 private:
  void arrange(LogSource& source, std::string_view piece);
  void append(LogSource& source, std::string_view piece);
  void show(const std::vector<LineFolder::Output>& lines);
  void show_due();
  void arm();
  void follow_live(LogSource& source);
  void note_time();
  [[nodiscard]] std::string prefix_of(const std::vector<int>& ranks, bool colour) const;
  [[nodiscard]] std::string redrawn(const std::vector<LineFolder::Output>& lines) const;

  EventLoop& loop_;
  Console& console_;
  const LogOptions& options_;
  bool terminal_;
  bool tidy_;        ///< a line that redraws itself is shown as it stands at its end
  bool live_lines_;  ///< bars are shown while they move, questions before they end
  bool plain_;       ///< prefix and bytes, nothing else
  bool waits_;       ///< of lines to fold the first one waits for the others
  std::optional<LineFolder> folder_;
  FoldedScreen screen_;           ///< on a terminal
  std::uint64_t lines_seen_ = 0;  ///< the console's when `screen_` was right
  EventLoop::Timer window_;
  std::string time_;                 ///< of the read that is being taken
  std::map<int, std::string> bars_;  ///< by writer: unfinished lines that redraw themselves
  std::string scratch_;
};

}  // namespace lrun::launcher
