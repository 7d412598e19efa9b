#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"

namespace lrun::detail {

/// The pauses of a loop that asks for something until a deadline: short at first, soon `longest`.
class Backoff {
 public:
  explicit Backoff(SteadyTime deadline, std::chrono::microseconds longest = std::chrono::milliseconds(10))
      : deadline_(deadline), longest_(longest) {}

  [[nodiscard]] bool is_over() const { return std::chrono::steady_clock::now() >= deadline_; }
  void sleep() {
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(2 * pause_, longest_);
  }

 private:
  SteadyTime deadline_;
  std::chrono::microseconds longest_;
  std::chrono::microseconds pause_{200};
};

}  // namespace lrun::detail
