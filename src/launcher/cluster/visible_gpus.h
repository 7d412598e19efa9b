#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "cluster/allocation.h"

namespace lrun::launcher {

/// The variable with which lrun limits the GPUs of a vendor that a program sees: 'CUDA_VISIBLE_DEVICES',
/// 'HIP_VISIBLE_DEVICES', 'ZE_AFFINITY_MASK'.
const char* visibility_variable(GpuVendor vendor);

/// The entries of such a variable: split at commas and trimmed. Empty for an empty value.
std::vector<std::string> split_visible_devices(const std::string& value);

/// Those of the machine's GPUs that programs started in `environment` see, in the order in which they count them:
///
/// NVIDIA   CUDA_VISIBLE_DEVICES
/// AMD      ROCR_VISIBLE_DEVICES, then HIP_VISIBLE_DEVICES or else CUDA_VISIBLE_DEVICES, which count what ROCR leaves
/// Intel    ZE_AFFINITY_MASK; '1.0' is a tile of GPU 1
///
/// Without the variable programs see all. Entries are indices, UUIDs or unambiguous beginnings of UUIDs. The index or
/// UUID of a GPU in MIG mode means its first instance. The list ends at the first entry that matches no GPU, so that ''
/// and '-1' hide all. A GPU that is named twice hides all, too.
GpuInventory visible_gpus(GpuInventory machine, const Environment& environment);

}  // namespace lrun::launcher
