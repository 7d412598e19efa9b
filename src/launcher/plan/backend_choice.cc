#include "plan/backend_choice.h"

#include "base/user_error.h"

namespace lrun::launcher {
namespace {

using enum GroupBackend;

GroupBackend default_backend(DeviceKind accelerator, int num_nodes, GpuVendor vendor) {
  if (accelerator == DeviceKind::kTpu) return kXla;
  if (accelerator == DeviceKind::kGpu) return vendor == GpuVendor::kIntel ? kXccl : kNccl;  // AMD's RCCL is 'nccl', too
  return num_nodes == 1 ? kShm : kShmGloo;
}

void check(GroupBackend asked, DeviceKind accelerator, int num_nodes) {
  const std::string name = "process group backend '" + text_of(asked) + "'";
  const bool on_gpus = accelerator == DeviceKind::kGpu;
  if (accelerator == DeviceKind::kTpu && asked != kGloo) {
    throw UserError(name + " does not work on TPUs", "leave it out: it is 'xla'");
  }
  if (asked == kNccl && accelerator == DeviceKind::kCpu) {
    throw UserError(name + " works on GPUs, and this run is on CPUs",
                    num_nodes == 1 ? "use 'shm' or 'gloo', or leave it out" : "use 'shm+gloo', or leave it out");
  }
  if (asked == kShmGloo && on_gpus) {
    throw UserError(name + " is for CPUs, and this run is on GPUs", "use 'nccl', or leave it out");
  }
  if (asked == kShm && (on_gpus || num_nodes > 1)) {
    throw UserError(name + " is for CPUs of one node, and this run is on " +
                        (on_gpus ? std::string("GPUs") : std::to_string(num_nodes) + " nodes"),
                    on_gpus ? "use 'nccl', or leave it out" : "use 'shm+gloo', or leave it out");
  }
}

}  // namespace

Setting<GroupBackend> choose_backend(const Setting<std::optional<GroupBackend>>& asked, DeviceKind accelerator,
                                     int num_nodes, GpuVendor vendor) {
  if (asked.value) check(*asked.value, accelerator, num_nodes);
  return {asked.value.value_or(default_backend(accelerator, num_nodes, vendor)), asked.source, asked.origin};
}

}  // namespace lrun::launcher
