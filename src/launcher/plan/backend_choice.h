#pragma once

#include <optional>
#include <string>

#include "cluster/allocation.h"
#include "plan/named_value.h"
#include "plan/setting.h"

namespace lrun::launcher {

/// The engine of the collectives, as workers find it in LRUN_PROCESS_GROUP_BACKEND.
enum class GroupBackend { kNccl, kGloo, kShm, kShmGloo, kXccl, kXla };
inline constexpr NamedValue<GroupBackend> kGroupBackends[] = {
    {"nccl", GroupBackend::kNccl},        {"gloo", GroupBackend::kGloo}, {"shm", GroupBackend::kShm},
    {"shm+gloo", GroupBackend::kShmGloo}, {"xccl", GroupBackend::kXccl}, {"xla", GroupBackend::kXla}};
inline std::string text_of(GroupBackend backend) { return name_in(kGroupBackends, backend); }

/// The backend that was asked for, else 'nccl' (of Intel 'xccl') on GPUs, 'shm' on the CPUs of one node and 'shm+gloo'
/// on those of several, 'xla' on TPUs.
/// \throws UserError  one that cannot work here
Setting<GroupBackend> choose_backend(const Setting<std::optional<GroupBackend>>& asked, DeviceKind accelerator,
                                     int num_nodes, GpuVendor vendor = GpuVendor::kNvidia);

}  // namespace lrun::launcher
