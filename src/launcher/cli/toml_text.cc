#include "cli/toml_text.h"

#include <charconv>
#include <cstdint>

namespace lrun::launcher {
namespace {

constexpr std::string_view kHex = "0123456789ABCDEF";
constexpr unsigned kFirstBeyondAscii = 0x80;

/// TOML's integers are of 64 bits, without leading zeros.
bool is_toml_integer(std::string_view text) {
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && stop == text.data() + text.size() && std::to_string(number) == text;
}

bool is_bare_key(std::string_view key) {
  constexpr std::string_view kBare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !key.empty() && key.find_first_not_of(kBare) == std::string_view::npos;
}

std::string escaped(char letter) {
  constexpr unsigned kDelete = 0x7F;
  const auto byte = static_cast<unsigned char>(letter);
  if (letter == '"' || letter == '\\') return {'\\', letter};
  if (byte >= ' ' && byte != kDelete) return {letter};
  return std::string("\\u00") + kHex[byte >> 4U] + kHex[byte & 0xFU];
}

}  // namespace

std::string toml_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char letter : text) quoted += escaped(letter);
  return quoted + "\"";
}

std::string toml_value(std::string_view text) {
  const bool bare = text == "true" || text == "false" || is_toml_integer(text);
  return bare ? std::string(text) : toml_string(text);
}

std::string toml_key(std::string_view key) { return is_bare_key(key) ? std::string(key) : toml_string(key); }

std::string as_ascii(std::string_view text) {
  std::string ascii;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < kFirstBeyondAscii && letter != '%') {
      ascii += letter;
    } else {
      ascii += {'%', kHex[byte >> 4U], kHex[byte & 0xFU]};
    }
  }
  return ascii;
}

std::string from_ascii(std::string_view text) {
  constexpr std::size_t kDigits = 2;
  std::string original;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned byte = 0;
    const std::string_view digits = text.substr(at + 1, kDigits);
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (text[at] == '%' && digits.size() == kDigits && parsed.ptr == digits.data() + kDigits) {
      original += static_cast<char>(byte);
      at += kDigits;
    } else {
      original += text[at];
    }
  }
  return original;
}

}  // namespace lrun::launcher
