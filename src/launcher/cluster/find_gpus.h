#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/duration.h"
#include "cluster/allocation.h"

namespace lrun::launcher {

/// The machine's GPUs: NVIDIA's, else AMD's, else Intel's.
///
/// NVIDIA's driver is asked in a process of its own, so that one that crashes or hangs is an answer (kFailed, after
/// `limit` at the latest). On a machine where nothing hints at that driver no process is made.
/// The caller must have one thread.
GpuInventory find_gpus(Duration limit = Duration(20'000));

/// An inventory on its way from that process: text without a NUL. Names that are not UTF-8 are repaired.
std::string write_inventory(const GpuInventory& inventory);
/// Empty when `text` is not what write_inventory() wrote.
std::optional<GpuInventory> read_inventory(std::string_view text);

}  // namespace lrun::launcher
