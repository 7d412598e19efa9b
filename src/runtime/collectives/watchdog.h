#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/clock.h"

namespace lrun {

/// Calls a function on a thread of its own when an armed deadline has passed: for waits that know no deadline, and can
/// only be ended from outside. Arming costs no wake-up of that thread while it is armed every now and then.
///
/// Threads  any.
class Watchdog {
 public:
  /// \param expire  may come a little after disarm(), when both happen at once; throws nothing.
  /// \throws std::system_error  the machine gives no thread.
  explicit Watchdog(std::function<void()> expire);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  void arm(SteadyTime deadline);
  void disarm();

 private:
  void watch();

  const std::function<void()> expire_;
  std::mutex mutex_;
  std::condition_variable changed_;
  SteadyTime deadline_;
  bool armed_ = false;
  bool idle_ = false;  // the thread sleeps until somebody wakes it
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace lrun
