#pragma once

#include <chrono>

#include "base/duration.h"
#include "verdict/run_end.h"

namespace lrun::launcher {

/// How long an ended run waits for a blocked console to take the last lines, once a signal has come.
inline constexpr Duration kHurriedPatience(1000);

/// How long a process that prints its last lines waits for a blocked console.
inline constexpr Duration kLastWordPatience(5000);

/// How long an ended run waits for a blocked console. The output of a run that succeeded is worth any wait
/// (`lrun … | less`); a user who interrupted the run does not want to wait.
inline Duration console_patience(RunEnd::Kind kind) {
  constexpr Duration kFailurePatience(60'000);
  constexpr Duration kNoLimit(std::chrono::hours(24 * 365));
  if (kind == RunEnd::Kind::kSucceeded) return kNoLimit;
  return kind == RunEnd::Kind::kWorkerFailed ? kFailurePatience : kLastWordPatience;
}

}  // namespace lrun::launcher
