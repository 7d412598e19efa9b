#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace lrun::inline core {

/// The whole content of a regular file, also of one that the kernel makes up. Empty when it is missing, is no regular
/// file (a pipe would make us wait), cannot be read, or is longer than `most_bytes`. Never throws for those.
std::optional<std::string> read_small_file(const std::filesystem::path& file, std::size_t most_bytes);

}  // namespace lrun::inline core
