#pragma once

#include <string>

#include "base/duration.h"
#include "inspect/machine_facts.h"

namespace lrun::launcher {

/// Asks the NVIDIA driver about itself and about every pair of GPUs, in a process of its own. What it does not say, or
/// not within `limit`, stays unknown. No process is made where nothing hints at a driver. One thread.
DriverFacts read_driver(Duration limit);

/// True when the kernel knows a PCI device of NVIDIA's that is a display or 3D controller.
/// `root` is put before every path that is read, for tests.
bool has_nvidia_hardware(const std::string& root = {});

}  // namespace lrun::launcher
