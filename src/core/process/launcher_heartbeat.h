#pragma once

#include <functional>

#include "base/clock.h"
#include "base/duration.h"
#include "base/event_loop.h"

namespace lrun::inline core {

/// The heartbeat of a launcher in a job of several nodes, by which its guard sees that it runs. The other nodes begin
/// without a launcher that has been silent for a heartbeat interval. When it stands still (stopped, or held by the
/// kernel), a quarter of that time may have passed already. Its workers must have ended before, or a rank would run
/// twice.
///
/// Calls `note` from the loop ten times in an interval, as long as this object lives.
class LauncherHeartbeat {
 public:
  LauncherHeartbeat(EventLoop& loop, Duration heartbeat, std::function<void()> note);

 private:
  void go_on();

  EventLoop& loop_;
  Duration interval_;
  std::function<void()> note_;
  EventLoop::Timer next_;
};

/// Judges the heartbeats for the guard. A value, without a clock of its own.
class HeartbeatWatch {
 public:
  explicit HeartbeatWatch(Duration heartbeat) : step_(heartbeat / kStepsPerHeartbeat) {}

  /// To be called at due(). \param last  when the last heartbeat came. \return whether the launcher has lost its place:
  /// it has been silent for 0.7 intervals and at three looks in a row, between which this process did not stand still.
  bool look(SteadyTime last, SteadyTime now);

  [[nodiscard]] SteadyTime due() const { return due_; }

  /// When a guard that may be stopped itself has to be continued, so that it looks in time.
  static SteadyTime alarm(SteadyTime last, Duration heartbeat) {
    return last + (kFirstLook - 1) * heartbeat / kStepsPerHeartbeat;
  }

 private:
  friend class LauncherHeartbeat;
  static constexpr int kStepsPerHeartbeat = 10;
  static constexpr int kFirstLook = 5;  ///< in steps after a heartbeat
  static constexpr int kLooks = 3;

  Duration step_;
  SteadyTime due_{};
  int silent_looks_ = 0;
};

}  // namespace lrun::inline core
