#pragma once

#include <string>
#include <vector>

#include "cluster/allocation.h"

namespace lrun::launcher {

/// 'process 4242 (python3) uses 30000 MiB of it, and 2 others'; empty when nobody computes on the GPU.
std::string why_busy(const Gpu& gpu);

/// True when nobody else could start on it: it is in exclusive mode and taken.
bool is_taken(const Gpu& gpu);

/// What to do instead of using `wanted` GPUs of `node` of which some are busy: which ones are free, as one would ask
/// for them.
std::string busy_hint(const AllocatedNode& node, std::size_t wanted, bool taken);

}  // namespace lrun::launcher
