#pragma once

#include <functional>

#include "base/event_loop.h"

namespace lrun::inline core {

/// A deadline whose clock can stand still: while a run is suspended with Ctrl-Z its grace must not run out. Empty until
/// it is armed.
class PausableTimer {
 public:
  explicit PausableTimer(EventLoop& loop) : loop_(loop) {}

  /// Starts anew; an earlier deadline is forgotten.
  void arm(Duration delay, std::function<void()> expired);
  /// Forgets the deadline.
  void cancel();
  [[nodiscard]] bool armed() const { return static_cast<bool>(expired_); }  ///< Also while it is paused.
  void pause();
  void resume();

 private:
  void start();

  EventLoop& loop_;
  EventLoop::Timer timer_;
  Duration left_{0};
  SteadyTime started_;
  std::function<void()> expired_;
};

}  // namespace lrun::inline core
