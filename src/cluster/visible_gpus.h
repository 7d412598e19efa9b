#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/allocation.h"

namespace lrun {

/// The entries of a CUDA_VISIBLE_DEVICES value: split at commas, trimmed. Empty for an empty value.
std::vector<std::string> split_visible_devices(const std::string& value);

/// Which of the machine's GPUs programs see under `cuda_visible_devices`, in its order, by CUDA's rules: without the
/// variable all; indices, UUIDs or unambiguous beginnings of UUIDs, MIG instances by their UUID; the first entry that
/// names nothing ends the list ('' and '-1': none); a GPU named twice leaves none.
GpuInventory visible_gpus(GpuInventory machine, const std::optional<std::string>& cuda_visible_devices);

}  // namespace lrun
