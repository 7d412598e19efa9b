#include "supervise/hang_watch.h"

#include <algorithm>
#include <utility>

namespace lrun::launcher {
namespace {

/// A hang is noticed at most a quarter of the timeout late.
Duration period_of(Duration timeout) { return std::max(Duration(1), timeout / 4); }

}  // namespace

HangWatch::HangWatch(EventLoop& loop, HangRules rules, std::function<RunProgress()> look, std::function<void()> hangs)
    : loop_(loop), rules_(rules), look_(std::move(look)), hangs_(std::move(hangs)), last_(look_()) {
  timer_ = loop_.after(period_of(rules_.timeout), [this] { look_again(); });
}

bool HangWatch::made_progress(const HangRules& rules, Duration between, const RunProgress& before,
                              const RunProgress& now) {
  if (rules.cpu_time_is_progress) {
    const auto negligible = static_cast<std::uint64_t>(between.count()) * rules.ticks_per_second / 100'000;  // 1 %
    if (now.cpu_ticks > before.cpu_ticks + negligible) return true;
  }
  if (now.steps > 0) return now.steps != before.steps;
  return !now.output_is_seen ? !rules.cpu_time_is_progress : now.bytes != before.bytes;
}

void HangWatch::look_again() {
  const Duration period = period_of(rules_.timeout);
  timer_ = loop_.after(period, [this] { look_again(); });
  const RunProgress now = look_();
  const RunProgress before = std::exchange(last_, now);
  if (!now.counts) return;
  if (made_progress(rules_, period, before, now)) {
    quiet_ = Duration::zero();
    reported_ = false;
    return;
  }
  quiet_ += period;
  if (quiet_ >= rules_.timeout && !std::exchange(reported_, true)) hangs_();
}

}  // namespace lrun::launcher
