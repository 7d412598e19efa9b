#pragma once

#include <cstdint>
#include <filesystem>

namespace lrun::launcher {

/// When a worker printed for the first time, in milliseconds since the epoch: the birth of the first of its log files.
/// 0 where there is no file, or where the file system keeps no times of birth. \param rank_folder  of one attempt:
/// '<logs>/attempt_0/3'
std::int64_t first_output_ms(const std::filesystem::path& rank_folder);

}  // namespace lrun::launcher
