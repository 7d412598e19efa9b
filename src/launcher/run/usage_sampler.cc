// In: the processes of this launcher's ranks. Out: 'usage' events with their CPU and memory, for the charts of `lrun
// report --html`. NodeLauncher owns one.
#include "run/usage_sampler.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "inspect/run_status.h"

namespace lrun::launcher {
namespace {

constexpr Duration kShortestInterval(1000);
constexpr int kSamplesOfTimeSoFar = 240;
constexpr int kTimeForOneOfLooks = 200;

/// Of the launcher's one thread: on a busy machine a look takes longer without costing more.
std::chrono::nanoseconds own_cpu_time() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace

Duration usage_interval(Duration lasted, Duration look_took) {
  return std::max({kShortestInterval, lasted / kSamplesOfTimeSoFar, look_took * kTimeForOneOfLooks});
}

UsageSampler::UsageSampler(EventLoop& loop, EventLog& events, pid_t launcher, std::function<const Attempt&()> attempt)
    : loop_(loop), events_(events), launcher_(launcher), attempt_(std::move(attempt)) {}

void UsageSampler::begin() {
  began_ = steady_now();
  wait(Duration::zero());
}

void UsageSampler::wait(Duration look_took) {
  const auto lasted = std::chrono::duration_cast<Duration>(steady_now() - began_);
  next_ = loop_.after(usage_interval(lasted, look_took), [this] { sample(); });
}

void UsageSampler::sample() {
  const std::chrono::nanoseconds before = own_cpu_time();
  const Attempt& attempt = attempt_();
  const std::vector<WorkerStatus> used = meter_.measure(launcher_, attempt.running());
  if (!used.empty()) events_.used(attempt.membership().attempt, used);
  wait(std::chrono::ceil<Duration>(own_cpu_time() - before));
}

}  // namespace lrun::launcher
