#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/duration.h"
#include "cluster/allocation.h"

namespace lrun::launcher {

/// The machine's GPUs: NVIDIA's, else AMD's, else Intel's.
///
/// A child process asks NVIDIA's driver, so that a driver that crashes or hangs gives kFailed, after `limit` at the
/// latest. No process is started on a machine without a trace of that driver.
/// The caller must have one thread.
GpuInventory find_gpus(Duration limit = Duration(20'000));

/// The inventory as text without a NUL, to be sent by that process. Bytes that are not UTF-8 are replaced.
std::string write_inventory(const GpuInventory& inventory);
/// \return empty when `text` is not of write_inventory().
std::optional<GpuInventory> read_inventory(std::string_view text);

}  // namespace lrun::launcher
