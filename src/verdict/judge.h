#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "verdict/failure_record.h"
#include "verdict/run_end.h"

namespace lrun {

/// What a run came to, from the endings of all its workers.
struct Verdict {
  RunEnd end;
  std::optional<FailureRecord> culprit;  ///< the worker to blame; empty when none failed by itself
  /// The worker that failed first of all, when it was passed over: a victim (is_victim()), or with an error file that
  /// is younger than the culprit's.
  std::optional<FailureRecord> overruled;
  std::vector<int> stopped_by_signal;  ///< ranks lrun stopped that ended in the grace, by the first signal or after it
  std::vector<int> killed;             ///< ranks that lrun had to kill
  std::vector<int> lost;               ///< ranks that did not end though they were killed
  std::vector<int> failed_later;       ///< ranks that failed after the culprit before lrun's signal reached them
  int succeeded = 0;
  int restarts = 0;       ///< of the whole run, before the attempt that this verdict is about
  int exit_code = 0;      ///< what lrun exits with
  int die_of_signal = 0;  ///< not 0: lrun is to end by this signal instead

  bool operator==(const Verdict&) const = default;
};

/// Judges a run. `records` holds one ending per worker, in the order in which they were seen. Pure.
///
/// The culprit is the first that failed without having been told to end, but a victim (a watchdog's abort, a lost
/// peer) only when nobody has an error of its own. The time of a failure is that of the worker's error file where it
/// left one (whole seconds, as torchrun compares them), else that of its death; at the same instant the lowest rank.
/// A rank that lrun stopped is never blamed, unless its error file is older than every other failure.
Verdict judge(const RunEnd& end, const std::vector<FailureRecord>& records);

/// lrun's own exit codes, after timeout(1).
inline constexpr int kExitTimedOut = 124;
inline constexpr int kExitRefused = 125;
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

}  // namespace lrun
