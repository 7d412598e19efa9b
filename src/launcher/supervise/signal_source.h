#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "base/event_loop.h"
#include "base/fd.h"

namespace lrun::launcher {

struct ReceivedSignal {
  int number = 0;
  pid_t sender = 0;  ///< 0: the kernel
  int value = 0;     ///< that was queued with it
};

/// Blocked signals as events of the loop (signalfd). The signals must be blocked already. One thread.
class SignalSource {
 public:
  /// \throws std::system_error  EMFILE.
  SignalSource(EventLoop& loop, const std::vector<int>& signal_numbers,
               std::function<void(const ReceivedSignal&)> arrived);

 private:
  void read_all();

  Fd fd_;
  std::function<void(const ReceivedSignal&)> arrived_;
  EventLoop::Watch watch_;
};

}  // namespace lrun::launcher
