#pragma once

#include <string>
#include <vector>

namespace lrun::launcher {

/// A whole small file of /proc or /sys, empty when it cannot be read.
std::string text_of(const std::string& path);

/// text_of() without the line's end.
std::string line_of(const std::string& path);

/// text_of() as a whole number, decimal or with '0x'; `otherwise` when it is none.
long number_of(const std::string& path, long otherwise);

/// Names in a directory without those that begin with a dot, numbers in their order and before other names; empty when
/// it cannot be read.
std::vector<std::string> names_in(const std::string& directory);

}  // namespace lrun::launcher
