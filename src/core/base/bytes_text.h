#pragma once

#include <cstdint>
#include <string>

namespace lrun::inline core {

/// '64 MiB', '1.5 GiB': at most one decimal.
std::string bytes_text(std::uint64_t bytes);
/// The same of KiB, which are not negative.
std::string kib_text(std::int64_t kib);

}  // namespace lrun::inline core
