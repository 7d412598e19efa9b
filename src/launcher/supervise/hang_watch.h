#pragma once

#include <cstdint>
#include <functional>

#include "base/event_loop.h"

namespace lrun::launcher {

/// The work of a run so far, added up over its workers. A run makes progress when any field changes.
struct RunProgress {
  bool counts = true;       ///< false: the run stands still on purpose (suspended, stopping); its time does not count
  std::uint64_t steps = 0;  ///< training steps reported through LRUN_PROGRESS_FD
  std::uint64_t bytes = 0;  ///< of output that lrun saw
  bool output_is_seen = true;  ///< false: lrun does not see the output, so only steps and CPU time count
  std::uint64_t cpu_ticks = 0;

  bool operator==(const RunProgress&) const = default;
};

/// When a run hangs; decided by the plan.
struct HangRules {
  Duration timeout{0};
  bool cpu_time_is_progress = false;     ///< usually false: collectives that wait use CPU time, too
  std::uint64_t ticks_per_second = 100;  ///< the machine's

  bool operator==(const HangRules&) const = default;
};

/// Compares the progress of a run from time to time, and calls back once when there was none for the whole timeout. A
/// run that goes on afterwards is watched anew. One thread.
class HangWatch {
 public:
  /// The loop calls `look` and `hangs`.
  HangWatch(EventLoop& loop, HangRules rules, std::function<RunProgress()> look, std::function<void()> hangs);

  /// True when `now` shows progress since `before`: of steps where the program reports any, else of output. Pure.
  static bool made_progress(const HangRules& rules, Duration between, const RunProgress& before,
                            const RunProgress& now);

 private:
  void look_again();

  EventLoop& loop_;
  HangRules rules_;
  std::function<RunProgress()> look_;
  std::function<void()> hangs_;
  RunProgress last_;
  Duration quiet_{0};
  bool reported_ = false;  ///< of the silence that goes on now
  EventLoop::Timer timer_;
};

}  // namespace lrun::launcher
