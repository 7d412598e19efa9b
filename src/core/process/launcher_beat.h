#pragma once

#include <functional>

#include "base/clock.h"
#include "base/duration.h"
#include "base/event_loop.h"

namespace lrun::inline core {

/// The beat of a launcher in a job of several nodes, by which its guard sees that it runs. The other nodes begin
/// without a launcher that they have not heard for a heartbeat. When it stands still (stopped, or held by the kernel) a
/// quarter of that time may have passed already. Its workers must have ended before, or a rank would run twice.
///
/// Calls `beat` from the loop ten times in a heartbeat, as long as this object lives.
class LauncherBeat {
 public:
  LauncherBeat(EventLoop& loop, Duration heartbeat, std::function<void()> beat);

 private:
  void go_on();

  EventLoop& loop_;
  Duration interval_;
  std::function<void()> beat_;
  EventLoop::Timer next_;
};

/// Judges those beats for the guard. A value, without a clock of its own.
class BeatWatch {
 public:
  explicit BeatWatch(Duration heartbeat) : step_(heartbeat / kStepsPerHeartbeat) {}

  /// To be called at due(). `beat`: the last one. \return whether the launcher has lost its place: it has been silent
  /// for 0.7 heartbeats and at three looks in a row, between which this process did not stand still itself.
  bool look(SteadyTime beat, SteadyTime now);

  [[nodiscard]] SteadyTime due() const { return due_; }

  /// When a guard that may be stopped itself is to be continued, so that it looks in time.
  static SteadyTime alarm(SteadyTime beat, Duration heartbeat) {
    return beat + (kFirstLook - 1) * heartbeat / kStepsPerHeartbeat;
  }

 private:
  friend class LauncherBeat;
  static constexpr int kStepsPerHeartbeat = 10;
  static constexpr int kFirstLook = 5;  ///< in steps after a beat
  static constexpr int kLooks = 3;

  Duration step_;
  SteadyTime due_{};
  int silent_looks_ = 0;
};

}  // namespace lrun::inline core
