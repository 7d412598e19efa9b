#pragma once

#include <string>

#include "cluster/allocation.h"

namespace lrun::launcher {

/// The TPU chips on this machine's PCI bus. Neither libtpu nor Google's metadata server is needed.
/// `root` is put before every path that is read, for tests.
TpuInventory find_tpu_chips(const std::string& root = {});

}  // namespace lrun::launcher
