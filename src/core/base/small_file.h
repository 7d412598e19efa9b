#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace lrun::inline core {

/// The whole content of a regular file, also of one that the kernel makes up. Empty when it is missing, is no regular
/// file (a pipe would make us wait), cannot be read, or is longer than `most_bytes`. Never throws for those.
std::optional<std::string> read_small_file(const std::filesystem::path& file, std::size_t most_bytes);

/// The first bytes of such a file, at most `most_bytes`. Empty where read_small_file() would be, whatever the length.
std::string read_file_head(const std::filesystem::path& file, std::size_t most_bytes);

}  // namespace lrun::inline core
