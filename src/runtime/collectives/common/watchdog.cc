#include "runtime/collectives/common/watchdog.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/collectives/common/background_thread.h"

namespace lrun::detail {
namespace {

/// An armed thread that wakes this often need not be woken for each new deadline.
constexpr auto kTick = std::chrono::milliseconds(100);

}  // namespace

Watchdog::Watchdog(std::function<void()> look, std::function<void()> expire)
    : look_(std::move(look)), expire_(std::move(expire)), thread_(start_background_thread([this] { watch(); })) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::arm(SteadyTime deadline) {
  const std::lock_guard lock(mutex_);
  deadline_ = deadline;
  armed_ = true;
  if (idle_) changed_.notify_all();
}

void Watchdog::disarm() {
  const std::lock_guard lock(mutex_);
  armed_ = false;
}

void Watchdog::watch() {
  ::pthread_setname_np(::pthread_self(), "lrun-watchdog");
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!armed_) {
      idle_ = true;
      changed_.wait(lock, [this] { return armed_ || stopping_; });
      idle_ = false;
      continue;
    }
    const SteadyTime now = std::chrono::steady_clock::now();
    const bool over = now >= deadline_;
    if (over) {
      armed_ = false;
    } else {
      changed_.wait_until(lock, std::min<SteadyTime>(deadline_, now + kTick), [this] { return stopping_; });
      if (stopping_ || !armed_ || std::chrono::steady_clock::now() >= deadline_) continue;
    }
    lock.unlock();
    (over ? expire_ : look_)();
    lock.lock();
  }
}

}  // namespace lrun::detail
