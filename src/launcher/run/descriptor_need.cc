#include "run/descriptor_need.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/user_error.h"
#include "rendezvous/job.h"
#include "run/run_metrics.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kOfLauncher = 48;
constexpr std::size_t kOfWorker = 2;
constexpr std::size_t kOfMetrics = RunMetrics::kMostConnections + 4;  // listener, epoll, /proc, a file in it

std::size_t needed_for(const StreamRoute& route) {
  if (route.way != StreamRoute::Way::kCaptured) return 0;
  return route.file ? 2 : 1;
}

}  // namespace

std::size_t descriptors_needed(const LaunchPlan& plan) {
  std::size_t needed = kOfLauncher + (plan.output.metrics.value.is_given() ? kOfMetrics : 0);
  for (const WorkerPlan& worker : plan.nodes.front().workers) {
    needed += kOfWorker;
    for (const LogStream stream : kLogStreams) {
      needed += needed_for(route_of(plan.output, worker, stream));
    }
  }
  return needed;
}

std::size_t most_connections(const FileLimit& limit, const LaunchPlan& plan) {
  constexpr std::size_t kMostPerWorker = 256;
  const std::size_t others = descriptors_needed(plan) - plan.nodes.front().workers.size();
  const std::size_t left = limit.available() - others;
  const std::size_t launchers = plan.rendezvous ? Job::most_launchers(*plan.rendezvous) : 0;
  return std::min(kMostPerWorker * (static_cast<std::size_t>(plan.world_size) + 1),
                  left - std::min(left / 2, launchers));
}

void check_descriptors(const FileLimit& limit, const LaunchPlan& plan) {
  const std::size_t needed = descriptors_needed(plan);
  if (needed <= limit.available()) return;
  throw UserError(fmt::format("{} workers need {} file descriptors and the hard limit is {}",
                              plan.nodes.front().workers.size(), needed, limit.available()),
                  fmt::format("raise it: 'ulimit -Hn {}' as root, or LimitNOFILE= of the service", needed));
}

}  // namespace lrun::launcher
