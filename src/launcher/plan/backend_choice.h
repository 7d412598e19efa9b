#pragma once

#include <string>

#include "cluster/allocation.h"
#include "plan/setting.h"

namespace lrun::launcher {

/// The engine of the collectives: what was asked, else 'nccl' on GPUs, 'shm' on the CPUs of one node and 'shm+gloo' on
/// those of several, 'xla' on TPUs. `accelerator` is resolved: 'cpu', 'gpu' or 'tpu'.
/// \throws UserError  a name that nobody knows (with the nearest one), or one that cannot work here.
Setting<std::string> choose_backend(const Setting<std::string>& asked, const std::string& accelerator, int num_nodes,
                                    GpuVendor vendor = GpuVendor::kNvidia);

}  // namespace lrun::launcher
