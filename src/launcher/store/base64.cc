#include "store/base64.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace lrun::launcher {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr unsigned kBitsOfDigit = 6;
constexpr unsigned kBitsOfByte = 8;
constexpr std::size_t kBytesOfGroup = 3;
constexpr std::size_t kDigitsOfGroup = 4;

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + kBytesOfGroup - 1) / kBytesOfGroup * kDigitsOfGroup);
  for (std::size_t start = 0; start < bytes.size(); start += kBytesOfGroup) {
    const std::string_view group = bytes.substr(start, kBytesOfGroup);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < kBytesOfGroup; ++i) {
      bits = (bits << kBitsOfByte) | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0U);
    }
    for (std::size_t i = 0; i < kDigitsOfGroup; ++i) {
      const std::uint32_t digit = (bits >> ((kDigitsOfGroup - 1 - i) * kBitsOfDigit)) % kDigits.size();
      text += i <= group.size() ? kDigits[digit] : '=';
    }
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % kDigitsOfGroup != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t start = 0; start < text.size(); start += kDigitsOfGroup) {
    std::uint32_t bits = 0;
    std::size_t digits = 0;
    for (const char letter : text.substr(start, kDigitsOfGroup)) {
      const std::size_t digit = kDigits.find(letter);
      if (digit != std::string_view::npos) ++digits;
      bits = (bits << kBitsOfDigit) | static_cast<std::uint32_t>(digit == std::string_view::npos ? 0 : digit);
    }
    const std::size_t count = std::max<std::size_t>(digits, 1) - 1;
    for (std::size_t i = 0; i < count; ++i) {
      bytes += static_cast<char>((bits >> ((kBytesOfGroup - 1 - i) * kBitsOfByte)) & 0xFFU);
    }
  }
  if (to_base64(bytes) != text) return std::nullopt;  // misplaced padding, other letters, unused bits that are not 0
  return bytes;
}

}  // namespace lrun::launcher
