#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/duration.h"
#include "verdict/judge.h"

namespace lrun::launcher {

/// The plan's rules for restarts. A value.
struct RestartRules {
  int most = 0;                   ///< restarts since the newest checkpoint; where nobody looks for one, in all
  Duration backoff{0};            ///< before the second restart in a row; doubles from then on. The first has none.
  bool repeats_identical = true;  ///< another attempt also after two that failed in the same way while they started

  bool operator==(const RestartRules&) const = default;
};

/// The restarts of a run so far.
struct RestartHistory {
  int used = 0;                       ///< restarts so far
  int in_a_row = 0;                   ///< those from which the delay follows, since an attempt that went well
  std::optional<FailureRecord> last;  ///< the failure before the last restart; empty: it was a hang
  int before_checkpoint = 0;          ///< of `used`, those before the newest checkpoint was written
  std::int64_t checkpoint_ns = 0;     ///< when that was, on the wall clock; 0: none is known

  [[nodiscard]] int since_checkpoint() const { return used - before_checkpoint; }
  bool operator==(const RestartHistory&) const = default;
};

/// For the launchers of nodes that join a job later.
std::string to_json(const RestartHistory& history);
/// Empty when the text is not JSON, lacks a field, or has a value out of range.
std::optional<RestartHistory> restart_history_from_json(std::string_view json);

struct RestartChoice {
  enum class Kind {
    kNone,     ///< the attempt did not fail, or restarts were not asked for
    kRestart,  ///< after `delay`
    kResize,   ///< at once, on other nodes: does not count as a restart
    kUsedUp,   ///< no restart is left, or none since the newest checkpoint
    kRepeats,  ///< the next attempt would fail in the same way
  };

  Kind kind = Kind::kNone;
  Duration delay{0};
  RestartHistory history;  ///< with this attempt in it

  [[nodiscard]] bool goes_on() const { return kind == Kind::kRestart || kind == Kind::kResize; }
  bool operator==(const RestartChoice&) const = default;
};

/// A failure within this time is one of the start.
inline constexpr Duration kStartUp = std::chrono::minutes(1);
/// After an attempt that lived this long the delays begin anew; after one with a newer checkpoint from the second on.
inline constexpr Duration kHealthy = std::chrono::minutes(10);
inline constexpr Duration kMostBackoff = std::chrono::minutes(5);

/// The choice after an attempt with this verdict. Pure.
RestartChoice choose_restart(const RestartRules& rules, const RestartHistory& history, const Verdict& verdict);

/// Two attempts failed in the same way while they started, and a third would, too. Numbers in the workers' messages
/// (pids, ports, times) may differ, and so may the rank that failed first. Signals from outside are never the same.
bool is_same_start_up_error(const FailureRecord& before, const FailureRecord& now);

}  // namespace lrun::launcher
