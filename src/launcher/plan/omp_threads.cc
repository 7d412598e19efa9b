#include "plan/omp_threads.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/split.h"
#include "base/whole_number.h"

namespace lrun::launcher {

int threads_per_worker(const LaunchPlan& plan, int cpus, const Environment& environment) {
  if (environment.has("OMP_NUM_THREADS")) return 0;
  const NodePlan& node = plan.nodes.front();
  if (plan.personality.omp_threads == Personality::OmpThreads::kOne) return node.workers.size() > 1 ? 1 : 0;
  return std::max(1, cpus / static_cast<int>(node.devices.size()));
}

std::string warn_about_threads(const Environment& environment) {
  const auto value = environment.get("OMP_NUM_THREADS");
  if (!value) return {};
  const std::vector<std::string> fields = fields_of(*value);
  const bool is_right = std::all_of(fields.begin(), fields.end(), [](const std::string& field) {
    return whole_number<int>(trimmed(field)).value_or(0) > 0;
  });
  if (is_right) return {};
  return fmt::format("'OMP_NUM_THREADS={}' is no number of threads: write 1 or more, or unset it", *value);
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
