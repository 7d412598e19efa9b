#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lrun::inline core {

struct Utf8Character {
  std::uint32_t code_point = 0;
  std::size_t bytes = 0;  ///< 0: the text does not begin with a character
};

/// The character that `text` begins with; `text` has at least one byte. By RFC 3629: overlong forms, surrogates and
/// code points beyond U+10FFFF are no characters.
Utf8Character first_character(std::string_view text);

/// How many bytes of `text` stand before the first that is not UTF-8; all of them where the whole text is.
std::size_t valid_bytes(std::string_view text);

/// How a character that acts on a terminal instead of being shown is written out: '\x07' for a control character,
/// '\u202e' for one that turns the writing direction or breaks the line. Empty for every other character.
std::string written_out(std::uint32_t code_point);

/// A byte as '\x9b'.
std::string written_out_byte(unsigned char byte);

}  // namespace lrun::inline core
