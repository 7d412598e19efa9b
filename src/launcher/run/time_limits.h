#pragma once

#include <functional>
#include <vector>

#include "base/event_loop.h"
#include "plan/launch_plan.h"
#include "verdict/run_end.h"

namespace lrun::launcher {

/// The time limits that the user set: --timeout for the run, --start-timeout for each attempt until all of its workers
/// are connected to the store. One thread.
class TimeLimits {
 public:
  /// \param over  gets the reason to end, at most once a limit. `loop` and `plan` must outlive this.
  TimeLimits(EventLoop& loop, const LaunchPlan& plan, std::function<void(const RunEnd&)> over);

  void begin_run();
  /// \param missing  gives the ranks that are not connected when the limit is over; empty: nothing is wrong
  void begin_attempt(std::function<std::vector<int>()> missing);
  void end_attempt() { attempt_.cancel(); }
  void end();

 private:
  void start_is_over(const std::vector<int>& missing);

  EventLoop& loop_;
  const LaunchPlan& plan_;
  std::function<void(const RunEnd&)> over_;
  EventLoop::Timer run_;
  EventLoop::Timer attempt_;
};

}  // namespace lrun::launcher
