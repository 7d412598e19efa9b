#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/clock.h"
#include "base/duration.h"

namespace lrun::launcher {

/// How long a round that could begin, or take nodes in, is held back for one more: until nobody has come for a pause,
/// so that whoever came is not followed by another for whom all start anew; at most for kMostPauses of them, so that
/// nodes that come and go do not hold up the others for ever. Pure: time goes in. A value.
class LastCall {
 public:
  static constexpr int kMostPauses = 10;

  explicit LastCall(Duration pause) : pause_(pause) {}

  /// Somebody came.
  void joined(SteadyTime now) { last_joined_ = now; }
  /// There are enough nodes; said again and again while there are.
  void enough(SteadyTime now) { since_ = since_.value_or(now); }
  /// There are not, or the round has begun: the next call is a new one.
  void reset() { since_.reset(); }

  /// When there were enough; never, where there are not.
  [[nodiscard]] SteadyTime since() const { return since_.value_or(kNever); }
  [[nodiscard]] SteadyTime end() const {
    const SteadyTime quiet = last_joined_ + pause_;
    return since_ ? std::min(quiet, *since_ + kMostPauses * pause_) : quiet;
  }

 private:
  static constexpr SteadyTime kNever = SteadyTime() + std::chrono::hours(24 * 365 * 100);

  Duration pause_;
  SteadyTime last_joined_{};
  std::optional<SteadyTime> since_;
};

}  // namespace lrun::launcher
