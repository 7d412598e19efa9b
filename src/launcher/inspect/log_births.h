#pragma once

#include <cstdint>
#include <filesystem>

namespace lrun::launcher {

/// When a worker printed for the first time, in milliseconds since the epoch: when the first of its log files was made.
/// 0 when it has none, or when the file system does not keep such times.
/// \param rank_folder  of one attempt: '<logs>/attempt_0/3'
std::int64_t first_output_ms(const std::filesystem::path& rank_folder);

}  // namespace lrun::launcher
