#pragma once

#include <cstdint>

namespace lrun::launcher {

/// The clocks of two ends of a connection at one moment, on each of them: nanoseconds.
struct ClockReading {
  std::int64_t steady_ns = 0;
  std::int64_t wall_ns = 0;
};

/// The leader's clocks against ours: ours plus these is the leader's time. From the quickest heartbeat so far, which
/// has spent the least time on the way. A value.
struct ClockOffset {
  std::int64_t steady_ns = 0;
  std::int64_t wall_ns = 0;
  std::int64_t round_trip_ns = -1;  ///< of that heartbeat; -1: there was none

  /// A heartbeat was acknowledged.
  /// \param sent_ns    when it was sent, on our steady clock; not positive: unknown
  /// \param leader     its clocks, when it answered
  /// \param received   our clocks, when the answer came
  /// \param same_host  both ends have the same clocks
  void update(std::int64_t sent_ns, const ClockReading& leader, const ClockReading& received, bool same_host) {
    const std::int64_t round_trip = received.steady_ns - sent_ns;
    const bool is_slower = round_trip_ns >= 0 && round_trip >= round_trip_ns;
    if (sent_ns <= 0 || round_trip < 0 || is_slower) return;
    round_trip_ns = round_trip;
    if (same_host) return;
    steady_ns = leader.steady_ns - (received.steady_ns - round_trip / 2);
    wall_ns = leader.wall_ns - (received.wall_ns - round_trip / 2);
  }

  bool operator==(const ClockOffset&) const = default;
};

}  // namespace lrun::launcher
