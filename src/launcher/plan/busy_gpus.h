#pragma once

#include <string>
#include <vector>

#include "cluster/allocation.h"

namespace lrun::launcher {

/// 'process 4242 (python3) uses 30000 MiB of it, and 2 others'. Empty when no process computes on the GPU.
std::string why_busy(const Gpu& gpu);

/// The GPU is in exclusive mode and taken: no other process could start on it.
bool is_taken(const Gpu& gpu);

/// The hint where `wanted` GPUs of `node` were asked for and some are busy: the free ones, as an option would name
/// them.
std::string busy_hint(const AllocatedNode& node, std::size_t wanted, bool taken);

}  // namespace lrun::launcher
