#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "cluster/allocation.h"

namespace lrun::launcher {

/// The variable by which lrun tells a program which of a vendor's GPUs it may use: 'CUDA_VISIBLE_DEVICES',
/// 'HIP_VISIBLE_DEVICES', 'ZE_AFFINITY_MASK'.
const char* visibility_variable(GpuVendor vendor);

/// The entries of such a variable's value: split at commas, trimmed. Empty for an empty value.
std::vector<std::string> split_visible_devices(const std::string& value);

/// Which of the machine's GPUs programs started in `environment` see, in the order in which they count them:
///
/// NVIDIA   CUDA_VISIBLE_DEVICES
/// AMD      ROCR_VISIBLE_DEVICES, and of what it leaves HIP_VISIBLE_DEVICES, else CUDA_VISIBLE_DEVICES
/// Intel    ZE_AFFINITY_MASK; '1.0' is a tile of GPU 1
///
/// Without the variable all. Entries are indices, UUIDs or unambiguous beginnings of UUIDs; the index or UUID of a GPU
/// in MIG mode is its first instance. The first entry that names nothing ends the list ('' and '-1': none); a GPU named
/// twice leaves none.
GpuInventory visible_gpus(GpuInventory machine, const Environment& environment);

}  // namespace lrun::launcher
