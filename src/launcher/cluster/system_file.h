#pragma once

#include <string>
#include <vector>

namespace lrun::launcher {

/// The whole text of a small file in /proc or /sys. Empty when it cannot be read.
std::string read_text(const std::string& path);

/// The first line of such a file, without the newline.
std::string read_line(const std::string& path);

/// The first line as a whole number, decimal or with '0x'; `otherwise` when it is not a number.
long read_number(const std::string& path, long otherwise);

/// The names in a directory, without those that begin with a dot: numbers in their order, then other names. Empty when
/// it cannot be read.
std::vector<std::string> list_names(const std::string& directory);

}  // namespace lrun::launcher
