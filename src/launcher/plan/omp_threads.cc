#include "plan/omp_threads.h"

#include <algorithm>

namespace lrun::launcher {

int threads_per_worker(const LaunchPlan& plan, int cpus, const Environment& environment) {
  if (environment.has("OMP_NUM_THREADS")) return 0;
  const NodePlan& node = plan.nodes.front();
  if (plan.personality.omp_threads == Personality::OmpThreads::kOne) return node.workers.size() > 1 ? 1 : 0;
  return std::max(1, cpus / static_cast<int>(node.devices.size()));
}

bool threads_follow_binding(const LaunchPlan& plan) {
  return plan.omp_num_threads > 0 && plan.personality.omp_threads != Personality::OmpThreads::kOne;
}

int most_threads(const NodePlan& node, const AllocatedNode& host) {
  constexpr int kNoLimit = 1 << 20;
  const bool has_quota = host.cpus < host.topology.cpus();
  return has_quota ? std::max(1, host.cpus / static_cast<int>(node.devices.size())) : kNoLimit;
}

}  // namespace lrun::launcher
