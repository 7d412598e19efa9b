#include "base/crc32c.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace lrun::inline core {
namespace {

constexpr std::uint32_t kReflectedPolynomial = 0x82F63B78U;
constexpr std::size_t kWord = 8;

/// Tables for eight bytes at a time: kTables[k][b] is the checksum of byte b with k zero bytes behind it.
using Tables = std::array<std::array<std::uint32_t, 256>, kWord>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kReflectedPolynomial : 0);
    tables[0][byte] = value;
  }
  for (std::size_t behind = 1; behind < kWord; ++behind) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t value = tables[behind - 1][byte];
      tables[behind][byte] = (value >> 8) ^ tables[0][value & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

std::uint64_t word_at(const char* bytes) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, kWord);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2,crc32"))) std::uint32_t by_instruction(std::string_view bytes,
                                                                     std::uint32_t before) noexcept {
  std::uint64_t value = ~before;
  for (; bytes.size() >= kWord; bytes.remove_prefix(kWord)) value = _mm_crc32_u64(value, word_at(bytes.data()));
  auto rest = static_cast<std::uint32_t>(value);
  for (const char byte : bytes) rest = _mm_crc32_u8(rest, static_cast<unsigned char>(byte));
  return ~rest;
}
#endif

}  // namespace

std::uint32_t crc32c_by_table(std::string_view bytes, std::uint32_t before) noexcept {
  std::uint32_t value = ~before;
  for (; bytes.size() >= kWord; bytes.remove_prefix(kWord)) {
    const std::uint64_t word = word_at(bytes.data()) ^ value;
    value = 0;
    for (std::size_t byte = 0; byte < kWord; ++byte) value ^= kTables[kWord - 1 - byte][word >> (8 * byte) & 0xff];
  }
  for (const char byte : bytes) value = (value >> 8) ^ kTables[0][(value ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~value;
}

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) noexcept {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return by_instruction(bytes, before);
#endif
  return crc32c_by_table(bytes, before);
}

}  // namespace lrun::inline core
