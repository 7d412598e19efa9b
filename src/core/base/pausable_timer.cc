#include "base/pausable_timer.h"

#include <algorithm>
#include <utility>

namespace lrun::inline core {

void PausableTimer::arm(Duration delay, std::function<void()> expired) {
  left_ = delay;
  expired_ = std::move(expired);
  start();
}

void PausableTimer::cancel() {
  timer_.cancel();
  expired_ = nullptr;
}

void PausableTimer::pause() {
  if (!timer_.armed()) return;
  timer_.cancel();
  const auto passed = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - started_);
  left_ = std::max(Duration::zero(), left_ - passed);
}

void PausableTimer::resume() {
  if (expired_ && !timer_.armed()) start();
}

void PausableTimer::start() {
  started_ = std::chrono::steady_clock::now();
  timer_ = loop_.after(left_, [this] {
    const auto expired = std::exchange(expired_, nullptr);
    if (expired) expired();
  });
}

}  // namespace lrun::inline core
