#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"

namespace lrun::launcher {

/// Shows a line that several ranks print once, with all of their ranks in front.
///
/// On a terminal the ranks whose copies came before show() are shown together, so the first copy never waits. Copies
/// that come within the window after it are held back and follow as one line when the window ends; such a copy may come
/// after a later line of its rank, as its text was already there to read. Elsewhere the first copy waits for the
/// window, too, so that all ranks are in front of one line. A rank's second copy is a new line: the second of each rank
/// are folded with each other, and so on. Order: lines appear in the order of their first copies. Pure: time is given,
/// nothing is written. Memory is bounded: beyond the limits the oldest windows end early.
class LineFolder {
 public:
  static constexpr std::size_t kLongestLine = 4096;  ///< a longer one is not worth keeping
  static constexpr std::size_t kMostLines = 1024;
  static constexpr std::size_t kMostBytes = std::size_t{256} * 1024;

  /// A line that is to be written now.
  struct Output {
    std::vector<int> ranks;  ///< ascending
    std::vector<int> all;    ///< these and the ranks it was shown for before; ascending
    std::string text;        ///< with its newline
    bool again = false;      ///< its text was shown before: these ranks' copies came later
    std::uint64_t id = 0;    ///< the same for a line and its later copies

    bool operator==(const Output&) const = default;
  };

  explicit LineFolder(Duration window, bool waits = false) : window_(window), waits_(waits) {}

  /// A rank printed a line of at most kLongestLine.
  void take(int rank, std::string_view line);

  /// The lines to write now: those that came since the last call, and copies whose window has ended.
  std::vector<Output> show(SteadyTime now);
  /// The same, as if all windows had ended.
  std::vector<Output> show_all();

  /// So much came since the last show() that another one is due, for the sake of memory.
  [[nodiscard]] bool full() const { return lines_.size() > 2 * kMostLines || bytes_ > 2 * kMostBytes; }

  /// When show() has something to write although nothing came; empty: not before something comes.
  [[nodiscard]] std::optional<SteadyTime> next() const;

 private:
  struct Line {
    std::string text;
    std::uint64_t id = 0;
    std::vector<int> seen;                 ///< ranks of all copies, ascending
    std::vector<int> held;                 ///< ranks of copies that were not shown, ascending
    std::optional<SteadyTime> window_end;  ///< empty: it came since the last show()
  };
  using Lines = std::list<Line>;

  void show_new(SteadyTime now, std::vector<Output>& to);
  void forget_oldest(std::vector<Output>& to);

  Duration window_;
  bool waits_;   ///< also the first copy of a line, to the end of its window
  Lines lines_;  ///< in the order of their first copies, so windows end in this order too
  std::unordered_map<std::string_view, std::deque<Lines::iterator>> by_text_;  ///< keys are views of lines_' texts
  std::size_t bytes_ = 0;
  std::uint64_t next_id_ = 1;
};

/// '0-3,7' for {0, 1, 2, 3, 7}; ascending ranks.
std::string rank_ranges(const std::vector<int>& ranks);

}  // namespace lrun::launcher
