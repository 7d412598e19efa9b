#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log_stream.h"
#include "plan/line_pattern.h"
#include "plan/watch_rule.h"

namespace lrun::launcher {

/// A rule that holds for a rank.
struct WatchFinding {
  std::size_t rule = 0;  ///< its place among the rules
  int rank = 0;
  std::string text;     ///< "rank 3 printed nan: 'step 7 loss=nan'", safe for a terminal
  Duration silence{0};  ///< of the rank, for so long; zero: it is about a line

  bool operator==(const WatchFinding&) const = default;
};

/// Looks for watch rules in what workers print. A rule is told once a rank, and one about numbers again after a number
/// for which it does not hold, at most once a minute. Lines end with '\n' or '\r', as progress bars end theirs; of a
/// line the first 4 KiB count. Pure but for what it remembers; the time is told.
class LineWatch {
 public:
  static constexpr std::size_t kLongestLine = 4096;

  /// \param rules  each valid
  explicit LineWatch(const std::vector<WatchRule>& rules);

  /// Takes bytes of a stream, in any pieces. \return what they show, rule by rule.
  [[nodiscard]] std::vector<WatchFinding> read(int rank, LogStream stream, std::string_view bytes, SteadyTime now);

  /// Takes the lines that have not ended, as those of a progress bar that stands still. What comes later may make
  /// another line of them.
  [[nodiscard]] std::vector<WatchFinding> read_unfinished(SteadyTime now);
  [[nodiscard]] bool has_unfinished() const;

  /// The ranks, of those that run, that have been silent for too long by `now`.
  [[nodiscard]] std::vector<WatchFinding> silent(SteadyTime now, const std::vector<int>& running);
  /// The first time at which silent() may find one. Empty: no rule waits.
  [[nodiscard]] std::optional<SteadyTime> next_silence() const;
  /// Words about each rule on numbers or silence that cannot have held: 'no line matched'.
  [[nodiscard]] std::vector<std::pair<std::size_t, std::string>> idle() const;
  /// Silence counts from `now` on: the workers did not run before.
  void wait_anew(SteadyTime now);

 private:
  /// Of one rule and rank.
  struct History {
    bool holds = false;      ///< and has been told
    bool is_silent = false;  ///< the same of silence
    SteadyTime last_match{};
    std::optional<SteadyTime> told{};
    std::deque<double> last_numbers;  ///< finite ones, the newest last
  };
  struct Rule {
    WatchRule rule;
    LinePattern pattern;
    std::map<int, History> ranks{};  ///< those with a match
    std::string no_number{};         ///< the value of a match that was none, while no other was one
    bool has_number = false;
  };
  /// The last line of a stream, without its end.
  struct Unfinished {
    std::string text;
    bool is_read = false;  ///< by read_unfinished()
  };

  /// A line, or several, with or without the end of the last one.
  struct Lines {
    int rank;
    std::string_view bytes;
    SteadyTime now;
  };
  void search_all(const Lines& lines, std::vector<WatchFinding>& found);
  void search(Rule& rule, const Lines& lines, std::vector<WatchFinding>& found);
  void check(Rule& rule, const Lines& line, std::vector<WatchFinding>& found);
  /// Words for what the line shows; empty: the rule does not hold.
  static std::string judge(Rule& rule, History& history, std::string_view line, std::string_view value);

  std::vector<Rule> rules_;
  std::map<std::pair<int, LogStream>, Unfinished> unfinished_;
};

}  // namespace lrun::launcher
