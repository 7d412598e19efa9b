#pragma once

#include <string>
#include <string_view>

namespace lrun::launcher {

/// A value as a TOML file holds it: whole numbers, 'true' and 'false' as they are, anything else in double quotes.
std::string toml_value(std::string_view text);

/// A key as a TOML file holds it: bare, or in double quotes where it has to be.
std::string toml_key(std::string_view key);

/// 'text' in double quotes, with its quotes, backslashes and control characters escaped.
std::string toml_string(std::string_view text);

/// 'text' in ASCII: bytes beyond it, and '%', as '%' and two hexadecimal digits.
std::string as_ascii(std::string_view text);

/// What as_ascii() made 'text' of; a '%' that it did not write stays.
std::string from_ascii(std::string_view text);

}  // namespace lrun::launcher
