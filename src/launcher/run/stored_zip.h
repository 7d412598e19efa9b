#pragma once

#include <string>
#include <string_view>

namespace lrun::launcher {

/// A zip archive with one file, which is not compressed. The same for the same file.
std::string stored_zip(std::string_view name, std::string_view content);

}  // namespace lrun::launcher
