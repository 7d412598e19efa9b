#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/duration.h"
#include "verdict/judge.h"

namespace lrun::launcher {

/// When a failed attempt is followed by another one; decided by the plan. A value.
struct RestartRules {
  int most = 0;                   ///< restarts in all
  Duration backoff{0};            ///< before the second restart in a row; doubles from then on. The first has none.
  bool repeats_identical = true;  ///< also when two attempts in a row failed in the same way while they started

  bool operator==(const RestartRules&) const = default;
};

/// What the attempts of a run came to so far.
struct RestartHistory {
  int used = 0;                       ///< restarts so far
  int in_a_row = 0;                   ///< of them since the last attempt that lived for kHealthy
  std::optional<FailureRecord> last;  ///< whose failure the last one followed; empty: a hang

  bool operator==(const RestartHistory&) const = default;
};

/// For the launchers of nodes that join a job later.
std::string to_json(const RestartHistory& history);
/// Empty for what is not JSON, lacks a field, or holds a value out of its range.
std::optional<RestartHistory> restart_history_from_json(std::string_view json);

struct RestartChoice {
  enum class Kind {
    kNone,     ///< the attempt did not fail, or restarts were not asked for
    kRestart,  ///< after `delay`
    kResize,   ///< at once, on other nodes: that is no restart
    kUsedUp,   ///< as often as allowed
    kRepeats,  ///< it would fail in the same way again
  };

  Kind kind = Kind::kNone;
  Duration delay{0};
  RestartHistory history;  ///< with this attempt in it

  [[nodiscard]] bool goes_on() const { return kind == Kind::kRestart || kind == Kind::kResize; }
  bool operator==(const RestartChoice&) const = default;
};

/// A failure within this time is one of starting.
inline constexpr Duration kStartUp = std::chrono::minutes(1);
/// An attempt that lived this long was well: the next delay begins anew.
inline constexpr Duration kHealthy = std::chrono::minutes(10);
inline constexpr Duration kMostBackoff = std::chrono::minutes(5);

/// What follows an attempt that came to `verdict`. Pure.
RestartChoice choose_restart(const RestartRules& rules, const RestartHistory& history, const Verdict& verdict);

/// Two attempts failed in the same way while they started: a third would, too. Numbers in what the workers said (pids,
/// ports, times) may differ, and so may the rank that was first. A signal that comes from outside is never the same.
bool is_same_start_up_error(const FailureRecord& before, const FailureRecord& now);

}  // namespace lrun::launcher
