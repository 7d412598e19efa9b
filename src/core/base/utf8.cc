#include "base/utf8.h"

namespace lrun::inline core {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

bool turns_direction(std::uint32_t character) {
  return (character >= 0x202A && character <= 0x202E) || (character >= 0x2066 && character <= 0x2069) ||
         character == 0x200E || character == 0x200F || character == 0x061C;
}

bool breaks_line(std::uint32_t character) { return character == 0x2028 || character == 0x2029; }

}  // namespace

Utf8Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  std::uint32_t code_point = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code_point = code_point << 6 | (byte(i) & 0x3FU);
  }
  const bool overlong = (length == 3 && code_point < 0x800) || (length == 4 && code_point < 0x10000);
  const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
  if (overlong || surrogate || code_point > 0x10FFFF) return {};
  return {code_point, length};
}

std::size_t valid_bytes(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t bytes = first_character(text.substr(at)).bytes;
    if (bytes == 0) break;
    at += bytes;
  }
  return at;
}

std::string written_out(std::uint32_t code_point) {
  const bool control = code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0);
  if (control) return written_out_byte(static_cast<unsigned char>(code_point));
  if (!turns_direction(code_point) && !breaks_line(code_point)) return {};
  std::string text = "\\u";
  for (unsigned shift = 16; shift > 0; shift -= 4) text += kHexDigits[code_point >> (shift - 4) & 0xFU];
  return text;
}

std::string written_out_byte(unsigned char byte) {
  return {'\\', 'x', kHexDigits[byte >> 4U], kHexDigits[byte & 0xFU]};
}

}  // namespace lrun::inline core
