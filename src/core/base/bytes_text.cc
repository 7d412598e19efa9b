#include "base/bytes_text.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>

namespace lrun::inline core {

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array kUnits{"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::string number = fmt::format("{:.1f}", value);
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return fmt::format("{} {}", number, kUnits[unit]);
}

std::string kib_text(std::int64_t kib) { return bytes_text(static_cast<std::uint64_t>(kib) * 1024); }

}  // namespace lrun::inline core
