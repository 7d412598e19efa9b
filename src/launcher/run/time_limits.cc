#include "run/time_limits.h"

#include <utility>

#include "base/rank_list.h"

namespace lrun::launcher {

TimeLimits::TimeLimits(EventLoop& loop, const LaunchPlan& plan, std::function<void(const RunEnd&)> over)
    : loop_(loop), plan_(plan), over_(std::move(over)) {}

void TimeLimits::begin_run() {
  const Duration limit = plan_.timeout.value;
  if (limit <= Duration::zero()) return;
  run_ = loop_.after(limit, [this, limit] { over_({.kind = RunEnd::Kind::kTimedOut, .limit_ms = limit.count()}); });
}

void TimeLimits::begin_attempt(std::function<std::vector<int>()> missing) {
  if (plan_.start_timeout.value <= Duration::zero()) return;
  attempt_ = loop_.after(plan_.start_timeout.value, [this, missing = std::move(missing)] { start_is_over(missing()); });
}

void TimeLimits::start_is_over(const std::vector<int>& missing) {
  if (missing.empty()) return;
  over_({.kind = RunEnd::Kind::kStartTimedOut,
         .limit_ms = plan_.start_timeout.value.count(),
         .who = ranks_text(missing)});
}

void TimeLimits::end() {
  run_.cancel();
  attempt_.cancel();
}

}  // namespace lrun::launcher
