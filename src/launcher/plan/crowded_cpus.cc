#include "plan/crowded_cpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/nearest.h"
#include "base/split.h"
#include "base/whole_number.h"

namespace lrun::launcher {
namespace {

/// The 64 of '64' and of '64,4', whose second number is for nested parallel regions. 0: it cannot be read.
int threads_asked(const Environment& environment) {
  const std::string text = environment.get("OMP_NUM_THREADS").value_or("");
  std::string_view rest = text;
  return std::max(0, whole_number<int>(trimmed(cut(rest, ','))).value_or(0));
}

/// '; '--devices 2' gives each one CPU'
std::string one_a_cpu(const Setting<DeviceRequest>& asked, int cpus) {
  if (!asked.given()) return {};
  return fmt::format("; '{}' gives each one CPU", as_written(asked.origin, std::to_string(cpus)));
}

}  // namespace

std::string warn_about_crowded_cpus(const LaunchPlan& plan, int cpus, const Environment& environment) {
  const NodePlan& node = plan.nodes.front();
  const auto devices = static_cast<std::int64_t>(node.devices.size());
  const std::string who = counted(devices, node.devices.size() == node.workers.size() ? "worker" : "replica");
  const std::string where = counted(cpus, "usable CPU");
  const std::int64_t most = std::int64_t{kMostPerCpu} * cpus;
  if (plan.accelerator.value == DeviceKind::kCpu && devices > most) {
    return fmt::format("{} on {} will mostly wait for each other{}", who, where, one_a_cpu(plan.devices, cpus));
  }
  const std::int64_t threads = threads_asked(environment);
  if (threads <= 1 || threads * devices <= most) return {};
  return fmt::format(
      "OMP_NUM_THREADS={} in {} makes {} on {}, which will mostly wait for each other; OMP_NUM_THREADS={} is a "
      "fair share",
      threads, who, counted(threads * devices, "thread"), where, std::max<std::int64_t>(1, cpus / devices));
}

}  // namespace lrun::launcher
