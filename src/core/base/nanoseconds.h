#pragma once

#include <chrono>
#include <cstdint>

namespace lrun::inline core {

/// A time of any clock as the number that goes into records and messages: nanoseconds since the clock's beginning.
inline std::int64_t nanoseconds(auto time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace lrun::inline core
