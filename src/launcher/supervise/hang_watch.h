#pragma once

#include <cstdint>
#include <functional>

#include "base/event_loop.h"

namespace lrun::launcher {

/// What a run has done so far, added up over its workers: if none of it changes, nothing goes on.
struct RunProgress {
  bool counts = true;          ///< false: the run stands still on purpose (suspended, stopping), so the time does not
  std::uint64_t steps = 0;     ///< training steps told through LRUN_PROGRESS_FD
  std::uint64_t bytes = 0;     ///< of output that lrun saw
  bool output_is_seen = true;  ///< false: lrun cannot see the output, so only steps (and CPU time) say anything
  std::uint64_t cpu_ticks = 0;

  bool operator==(const RunProgress&) const = default;
};

/// When a run hangs; decided by the plan.
struct HangRules {
  Duration timeout{0};
  bool cpu_time_is_progress = false;     ///< waiting collectives spin, so usually it says nothing
  std::uint64_t ticks_per_second = 100;  ///< the machine's

  bool operator==(const HangRules&) const = default;
};

/// Looks from time to time whether anything went on, and says once when nothing did for the whole time. A run that goes
/// on after that is watched anew. One thread.
class HangWatch {
 public:
  /// `look` and `hangs` are called by the loop.
  HangWatch(EventLoop& loop, HangRules rules, std::function<RunProgress()> look, std::function<void()> hangs);

  /// True when `now` shows progress since `before`: of steps where the program tells any, else of output. Pure.
  static bool went_on(const HangRules& rules, Duration between, const RunProgress& before, const RunProgress& now);

 private:
  void look_again();

  EventLoop& loop_;
  HangRules rules_;
  std::function<RunProgress()> look_;
  std::function<void()> hangs_;
  RunProgress last_;
  Duration quiet_{0};
  bool said_ = false;
  EventLoop::Timer timer_;
};

}  // namespace lrun::launcher
