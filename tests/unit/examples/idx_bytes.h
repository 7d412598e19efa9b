#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fashion_mnist {

/// An idx file of unsigned bytes: its header, then `values`.
inline std::string idx_bytes(const std::vector<std::uint32_t>& shape, const std::string& values) {
  std::string bytes{0, 0, 8, static_cast<char>(shape.size())};
  for (const std::uint32_t length : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(length >> shift & 0xff);
  }
  return bytes + values;
}

}  // namespace fashion_mnist
