#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/duration.h"

namespace lrun::launcher {

/// Whether the other end of a connection has been silent for too long. The time for which this process stood still does
/// not count: the machine slept, or lrun was stopped, and heartbeats were not sent. Pure; a value.
class SilenceWatch {
 public:
  SilenceWatch(Duration limit, SteadyTime now) : limit_(limit), heard_(now), looked_(now) {}

  void heard(SteadyTime now) { heard_ = now; }
  [[nodiscard]] SteadyTime last_heard() const { return heard_; }
  /// The connection begins.
  void restart(SteadyTime now) { heard_ = looked_ = now; }

  /// Called several times in the limit.
  [[nodiscard]] bool is_silent(SteadyTime now) {
    const SteadyTime before = std::exchange(looked_, now);
    if (now - before > limit_ / 2) heard_ = now;
    return is_still_silent(now);
  }
  [[nodiscard]] bool is_still_silent(SteadyTime now) const { return now - heard_ >= limit_; }
  /// Until it will have been silent for too long; at least a millisecond.
  [[nodiscard]] Duration rest(SteadyTime now) const {
    return std::max(std::chrono::ceil<Duration>(heard_ + limit_ - now), Duration(1));
  }

 private:
  Duration limit_;
  SteadyTime heard_;
  SteadyTime looked_;
};

}  // namespace lrun::launcher
