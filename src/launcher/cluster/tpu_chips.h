#pragma once

#include <string>

#include "cluster/allocation.h"

namespace lrun::launcher {

/// The chips of TPUs on this machine's PCI bus; neither libtpu nor Google's metadata server is asked.
/// `root` is put before every path that is read, for tests.
TpuInventory find_tpu_chips(const std::string& root = {});

}  // namespace lrun::launcher
