#pragma once

#include <optional>
#include <string>

#include "cluster/allocation.h"

namespace lrun::launcher {

/// GPUs of AMD as the kernel's compute driver lists them, in its order, which is that of ROCR_VISIBLE_DEVICES; empty
/// without that driver. Without permission to use it the answer is kFailed. No ROCm is needed.
/// `root` is put before every path that is read, for tests.
std::optional<GpuInventory> find_amd_gpus(const std::string& root = {});

/// GPUs of Intel on cards of their own, in PCI order; empty when there is none. What is built into a processor (bus 0)
/// is not counted: a training run never means it.
std::optional<GpuInventory> find_intel_gpus(const std::string& root = {});

}  // namespace lrun::launcher
