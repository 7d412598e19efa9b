#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace lrun::inline core {

using SteadyTime = std::chrono::steady_clock::time_point;
using WallTime = std::chrono::system_clock::time_point;

inline SteadyTime steady_now() { return std::chrono::steady_clock::now(); }

/// A time of any clock as the number that goes into records and messages: nanoseconds since the clock's beginning.
inline std::int64_t nanoseconds(auto time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

/// Now, in milliseconds since the epoch.
inline std::int64_t wall_ms() { return nanoseconds(std::chrono::system_clock::now()) / 1'000'000; }

/// The clocks of this process. A test may put others in their place.
struct Clock {
  std::function<SteadyTime()> steady = steady_now;
  std::function<WallTime()> wall = [] { return std::chrono::system_clock::now(); };
};

}  // namespace lrun::inline core
