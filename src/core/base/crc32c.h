#pragma once

#include <cstdint>
#include <string_view>

namespace lrun::inline core {

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4) of `bytes`. To go on over more of them pass the value so far as
/// `before`: crc32c(b, crc32c(a)) is that of a and b. Uses the processor's instruction where it has one.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0) noexcept;

/// The same without the instruction.
[[nodiscard]] std::uint32_t crc32c_by_table(std::string_view bytes, std::uint32_t before = 0) noexcept;

}  // namespace lrun::inline core
