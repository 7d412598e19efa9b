#pragma once

#include <optional>
#include <string>

#include "cluster/allocation.h"

namespace lrun::launcher {

/// The GPUs of AMD in the order of the kernel's compute driver, which is that of ROCR_VISIBLE_DEVICES. Empty without
/// that driver; kFailed without permission to use it. ROCm is not needed. `root` is put before every path that is read,
/// for tests.
std::optional<GpuInventory> find_amd_gpus(const std::string& root = {});

/// The GPUs of Intel on cards of their own, in PCI order; empty when the machine has none. A GPU inside a processor (on
/// bus 0) is not counted, because training runs do not use it.
std::optional<GpuInventory> find_intel_gpus(const std::string& root = {});

}  // namespace lrun::launcher
