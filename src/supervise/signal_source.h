#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "base/event_loop.h"
#include "base/fd.h"

namespace lrun {

/// Blocked signals, and who sent them (0: the kernel), as events of the loop (signalfd). The signals must be blocked
/// already. One thread.
class SignalSource {
 public:
  /// \throws std::system_error  EMFILE.
  SignalSource(EventLoop& loop, const std::vector<int>& signal_numbers, std::function<void(int, pid_t)> arrived);

 private:
  void read_all();

  Fd fd_;
  std::function<void(int, pid_t)> arrived_;
  EventLoop::Watch watch_;
};

}  // namespace lrun
