#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lrun {

struct Utf8Character {
  std::uint32_t code_point = 0;
  std::size_t bytes = 0;  ///< 0: the text does not begin with a character
};

/// The character that `text` begins with; `text` has at least one byte. As RFC 3629 has it: overlong forms, surrogates
/// and what lies beyond U+10FFFF are no characters.
Utf8Character first_character(std::string_view text);

}  // namespace lrun
