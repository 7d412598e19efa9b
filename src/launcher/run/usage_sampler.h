#pragma once

#include <sys/types.h>

#include <functional>

#include "base/clock.h"
#include "base/duration.h"
#include "base/event_loop.h"
#include "inspect/rank_meter.h"
#include "report/event_log.h"
#include "run/attempt.h"

namespace lrun::launcher {

/// The time from one sample of the ranks' use to the next: a second at first, and later 1/240 of the time that the run
/// has lasted, so that a week has some two thousand samples and each of its charts the same detail. A look through
/// /proc that costs much, as on a machine of thousands of processes, is made less often: it may take 1/200 of one core.
/// Pure. \param lasted  the run so far \param look_took  processor time of the last look
Duration usage_interval(Duration lasted, Duration look_took);

/// Samples the CPU and memory that the ranks of this launcher use, and writes each sample to the events of the run. A
/// run of less than a second has none. One thread.
class UsageSampler {
 public:
  /// \param launcher  the process above all ranks
  /// \param attempt  the present one. Everything must outlive this.
  UsageSampler(EventLoop& loop, EventLog& events, pid_t launcher, std::function<const Attempt&()> attempt);
  UsageSampler(const UsageSampler&) = delete;
  UsageSampler& operator=(const UsageSampler&) = delete;

  void begin();
  void end() { next_.cancel(); }

 private:
  void sample();
  void wait(Duration look_took);

  EventLoop& loop_;
  EventLog& events_;
  pid_t launcher_;
  std::function<const Attempt&()> attempt_;
  RankMeter meter_;
  SteadyTime began_;
  EventLoop::Timer next_;
};

}  // namespace lrun::launcher
