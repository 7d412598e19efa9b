#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"

namespace lrun {

/// The pauses of a loop that asks for something until a deadline: short at first, soon 10 ms.
class Backoff {
 public:
  explicit Backoff(SteadyTime deadline) : deadline_(deadline) {}

  [[nodiscard]] bool is_over() const { return std::chrono::steady_clock::now() >= deadline_; }
  void sleep() {
    std::this_thread::sleep_for(pause_);
    pause_ = std::min<std::chrono::microseconds>(2 * pause_, std::chrono::milliseconds(10));
  }

 private:
  SteadyTime deadline_;
  std::chrono::microseconds pause_{200};
};

}  // namespace lrun
