#pragma once

#include <cstddef>
#include <deque>
#include <functional>
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
  std::string text;  ///< "rank 3 printed nan: 'step 7 loss=nan'", safe for a terminal

  bool operator==(const WatchFinding&) const = default;
};

/// Looks for watch rules in what workers print. A rule is told once a rank, and again after a line of the rank for
/// which it does not hold. Lines end with '\n' or '\r', as progress bars end theirs; of a line the first 4 KiB count.
/// Pure but for what it remembers; the time is told.
class LineWatch {
 public:
  static constexpr std::size_t kLongestLine = 4096;

  /// \param rules  each valid
  explicit LineWatch(const std::vector<WatchRule>& rules);

  /// Takes bytes of a stream, in any pieces. \return what they show, rule by rule.
  [[nodiscard]] std::vector<WatchFinding> read(int rank, LogStream stream, std::string_view bytes, SteadyTime now);

  /// The ranks that have been silent for too long by `now`.
  [[nodiscard]] std::vector<WatchFinding> silent(SteadyTime now);
  /// The first time at which silent() may find one. Empty: no rule waits.
  [[nodiscard]] std::optional<SteadyTime> next_silence() const;
  /// The rules about numbers and silence whose pattern no line has matched.
  [[nodiscard]] std::vector<std::size_t> unmatched() const;
  /// Silence counts from `now` on: the workers did not run before.
  void wait_anew(SteadyTime now);

 private:
  /// Of one rule and rank.
  struct History {
    bool holds = false;      ///< and has been told
    bool is_silent = false;  ///< the same of silence
    SteadyTime last_match{};
    std::deque<double> last_numbers;  ///< finite ones, the newest last
  };
  struct Rule {
    WatchRule rule;
    LinePattern pattern;
    std::map<int, History> ranks;  ///< those with a match
  };

  void search(Rule& rule, int rank, std::string_view lines, SteadyTime now, std::vector<WatchFinding>& found);
  void check(Rule& rule, int rank, std::string_view line, SteadyTime now, std::vector<WatchFinding>& found);

  std::vector<Rule> rules_;
  std::map<std::pair<int, LogStream>, std::string> unfinished_;  ///< the last line of each stream, without its end
};

}  // namespace lrun::launcher
