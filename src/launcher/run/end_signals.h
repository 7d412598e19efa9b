#pragma once

#include <functional>
#include <vector>

#include "base/event_loop.h"
#include "plan/launch_plan.h"
#include "process/guard.h"
#include "supervise/signal_source.h"

namespace lrun::launcher {

/// Reads the signals that ask for the end of an lrun that has no workers. Pinned.
class EndSignals {
 public:
  /// \param asked  gets the signal; 0: the guard was killed.
  EndSignals(EventLoop& loop, const LaunchPlan& plan, const Guard& guard, std::function<void(int)> asked);
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

 private:
  void received(const ReceivedSignal& signal);

  const Guard& guard_;
  const std::vector<int>& stop_signals_;
  std::function<void(int)> asked_;
  SignalSource source_;
};

}  // namespace lrun::launcher
