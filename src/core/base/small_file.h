#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace lrun::inline core {

/// A regular file's whole content, also of one that the kernel makes up. Empty when it is not there, is no regular file
/// (a pipe would make us wait), cannot be read, or is longer than `most_bytes`. Never throws for what it finds.
std::optional<std::string> read_small_file(const std::filesystem::path& file, std::size_t most_bytes);

}  // namespace lrun::inline core
