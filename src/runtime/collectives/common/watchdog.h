#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/clock.h"

namespace lrun::detail {

/// Watches waits that have no deadline and can only be ended from outside. While it is armed, a separate thread calls
/// one function every tenth of a second, and another one when the deadline has passed. If it is armed regularly, arming
/// does not wake the thread.
///
/// Threads  any.
class Watchdog {
 public:
  /// \param look, expire  may be called shortly after disarm(), when both happen at once; throw nothing.
  /// \throws std::system_error  no thread can be started.
  Watchdog(std::function<void()> look, std::function<void()> expire);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  void arm(SteadyTime deadline);
  void disarm();

 private:
  void watch();

  const std::function<void()> look_;
  const std::function<void()> expire_;
  std::mutex mutex_;
  std::condition_variable changed_;
  SteadyTime deadline_;
  bool armed_ = false;
  bool idle_ = false;  // the thread sleeps until somebody wakes it
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace lrun::detail
