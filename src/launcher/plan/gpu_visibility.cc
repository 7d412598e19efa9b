#include "plan/gpu_visibility.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/user_error.h"
#include "cluster/visible_gpus.h"

namespace lrun::launcher {
namespace {

/// lrun chose no GPUs. As under torchrun's --virtual-local-rank, each worker gets the entry of the launcher's
/// CUDA_VISIBLE_DEVICES at its local rank, or the bare number.
void isolate_by_name(NodePlan& node, const std::optional<std::string>& launcher_has) {
  const std::vector<std::string> entries = split_visible_devices(launcher_has.value_or(""));
  for (WorkerPlan& worker : node.workers) {
    const auto index = static_cast<std::size_t>(worker.local_rank);
    if (launcher_has && index >= entries.size()) {
      throw UserError(
          "local rank " + std::to_string(index) + " has no GPU in CUDA_VISIBLE_DEVICES='" + *launcher_has + "'",
          "use '--nproc-per-node " + std::to_string(entries.size()) + "', or name more GPUs");
    }
    worker.visible_devices = launcher_has ? entries[index] : std::to_string(index);
  }
}

void isolate_by_device(NodePlan& node) {
  for (WorkerPlan& worker : node.workers) {
    std::string visible;
    for (const DeviceId& device : worker.devices) visible += (visible.empty() ? "" : ",") + device.id;
    worker.visible_devices = visible;
  }
}

void set_visible_devices(LaunchPlan& plan, const std::vector<DeviceChoice>& choices, const Environment& environment) {
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    NodePlan& node = plan.nodes[i];
    node.gpu_vendor = choices[i].gpu_vendor;
    if (!plan.isolate_gpus) {
      for (WorkerPlan& worker : node.workers) worker.visible_devices = choices[i].visible_devices;
    } else if (plan.accelerator.value == DeviceKind::kGpu) {
      isolate_by_device(node);
    } else {
      isolate_by_name(node, environment.get("CUDA_VISIBLE_DEVICES"));
    }
  }
}

bool is_instance(const DeviceId& device) { return device.id.starts_with("MIG-"); }

/// A process can use only one instance of a GPU in MIG mode, so that workers on such devices see only their own.
bool needs_isolation(const LaunchPlan& plan) {
  bool needed = false;
  for (const NodePlan& node : plan.nodes) {
    if (std::none_of(node.devices.begin(), node.devices.end(), is_instance) || node.devices.size() == 1) continue;
    if (node.workers.size() < node.devices.size()) {
      throw UserError("strategy '" + text_of(plan.strategy.value) +
                          "' gives one process several devices, and of MIG instances "
                          "it can use only one",
                      "use '--strategy ddp'");
    }
    needed = true;
  }
  return needed;
}

bool wants_isolation(const LaunchRequest& request, std::vector<std::string>& warnings) {
  const std::optional<DeviceKind> accelerator = request.accelerator.value;
  if (!request.isolate_gpus || !accelerator || accelerator == DeviceKind::kGpu) return request.isolate_gpus;
  if (accelerator == DeviceKind::kTpu) {
    warnings.emplace_back("workers on TPUs see only their own chip: '--isolate-gpus' has no effect");
    return false;
  }
  warnings.emplace_back("workers on CPUs have no GPU to isolate: '--isolate-gpus' has no effect");
  return false;
}

}  // namespace

void choose_visibility(LaunchPlan& plan, const std::vector<DeviceChoice>& choices, const LaunchRequest& request,
                       const Environment& environment) {
  plan.isolate_gpus =
      wants_isolation(request, plan.warnings) || needs_isolation(plan) || (!choices.empty() && choices.front().is_own);
  set_visible_devices(plan, choices, environment);
}

}  // namespace lrun::launcher
