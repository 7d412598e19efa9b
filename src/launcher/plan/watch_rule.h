#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/duration.h"
#include "plan/line_pattern.h"
#include "plan/named_value.h"
#include "plan/rank_ranges.h"

namespace lrun::launcher {

/// A condition on the lines that match the pattern of a rule.
struct WatchTest {
  enum class Kind {
    kSeen,    ///< there is such a line
    kNan,     ///< its number is NaN
    kInf,     ///< its number is infinite
    kAbove,   ///< its number is above `limit`
    kBelow,   ///< its number is below `limit`
    kJump,    ///< its number is above `limit` times the median of the numbers before
    kSilent,  ///< there was no such line for `time` since the last one
  };
  Kind kind = Kind::kSeen;
  double limit = 0;
  Duration time{0};

  bool operator==(const WatchTest&) const = default;
};

enum class WatchReaction { kWarn, kStop, kRestart };
inline constexpr NamedValue<WatchReaction> kWatchReactions[] = {
    {"warn", WatchReaction::kWarn}, {"stop", WatchReaction::kStop}, {"restart", WatchReaction::kRestart}};

/// A rule on what workers print: --watch. A value.
struct WatchRule {
  static constexpr std::size_t kMost = 16;  ///< rules of a run

  std::string text;              ///< as the user wrote it
  std::string pattern;           ///< valid for LinePattern::make()
  std::vector<WatchTest> tests;  ///< at least one
  WatchReaction reaction = WatchReaction::kStop;
  RankRanges ranks;    ///< empty: all
  std::string origin;  ///< '--watch', '--watch@0', 'lrun.toml:3: watch'

  bool operator==(const WatchRule&) const = default;
};

/// Reads 'PATTERN', or 'PATTERN => TEST, TEST REACTION' as in 'loss=([^ ]+) => nan, > 100 restart'. Tests: nan, inf,
/// '> X', '< X', '3x', 'silent TIME'. Without tests a pattern with a group asks for nan and inf, and one without a
/// group for any line that matches. Without a reaction: stop. Pure.
std::variant<WatchRule, LinePattern::Problem> parse_watch_rule(std::string_view text);

}  // namespace lrun::launcher
