#include "plan/tpu_environment.h"

#include <fmt/format.h>

#include <string>

#include "base/whole_number.h"
#include "plan/tpu_choice.h"

namespace lrun::launcher {
namespace {

/// Each chip has its own port, so that two runs on one host do not collide. The first is torch_xla's own.
int chip_port(const DeviceId& chip) {
  constexpr int kFirst = 8476;
  return kFirst + whole_number<int>(chip.id).value_or(0);
}

std::string addresses_of(const NodePlan& node) {
  std::string text;
  for (const DeviceId& chip : node.devices)
    text += fmt::format("{}localhost:{}", text.empty() ? "" : ",", chip_port(chip));
  return text;
}

bool on_chips(const NodePlan& node) { return node.devices.front().kind == DeviceKind::kTpu; }

}  // namespace

void add_shared_tpu_variables(WorkerEnvironment::Variables& variables, const LaunchPlan& plan, const NodePlan& node,
                              const Environment& base) {
  variables.emplace_back("PJRT_DEVICE", on_chips(node) ? "TPU" : "CPU");
  variables.emplace_back("PJRT_LOCAL_PROCESS_COUNT", std::to_string(node.local_world_size()));
  if (!on_chips(node)) return;
  variables.emplace_back("TPU_CHIPS_PER_PROCESS_BOUNDS", "1,1,1");
  if (plan.num_nodes == 1) {
    variables.emplace_back("TPU_PROCESS_BOUNDS", tpu_process_bounds(node.devices.size()));
    variables.emplace_back("TPU_PROCESS_ADDRESSES", addresses_of(node));
    return;
  }
  for (const char* const name : {"TPU_PROCESS_BOUNDS", "TPU_PROCESS_ADDRESSES"}) {
    if (const auto told = base.get(name)) variables.emplace_back(name, *told);
  }
}

void add_tpu_variables_of(const WorkerPlan& worker, bool alone, WorkerEnvironment::Variables& variables) {
  variables.emplace_back("PJRT_LOCAL_PROCESS_RANK", std::to_string(worker.local_rank));
  const DeviceId& chip = worker.devices.front();
  if (chip.kind != DeviceKind::kTpu) return;
  variables.emplace_back("TPU_VISIBLE_CHIPS", chip.id);
  if (!alone) return;
  variables.emplace_back("TPU_PROCESS_PORT", std::to_string(chip_port(chip)));
  variables.emplace_back("CLOUD_TPU_TASK_ID", std::to_string(worker.local_rank));
}

}  // namespace lrun::launcher
