#pragma once

#include <cstdint>
#include <string>

namespace lrun::launcher {

/// The limit of files in memory where --memory-dir gives none, in bytes: a quarter of what was free before `kept` bytes
/// were kept there; of the file system, of the machine, and of the cgroup, which counts these files, too.
std::uint64_t default_memory_limit(const std::string& folder, std::uint64_t kept);

}  // namespace lrun::launcher
