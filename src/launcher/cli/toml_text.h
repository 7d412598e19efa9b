#pragma once

#include <string>
#include <string_view>

namespace lrun::launcher {

/// A value as TOML text: whole numbers, 'true' and 'false' are unchanged, anything else gets double quotes.
std::string toml_value(std::string_view text);

/// A key as TOML text: bare, or in double quotes where TOML needs them.
std::string toml_key(std::string_view key);

/// `text` in double quotes, with quotes, backslashes and control characters escaped.
std::string toml_string(std::string_view text);

/// `text` in ASCII: other bytes, and '%', become '%' and two hexadecimal digits.
std::string as_ascii(std::string_view text);

/// Undoes as_ascii(). A '%' that as_ascii() did not write is unchanged.
std::string from_ascii(std::string_view text);

}  // namespace lrun::launcher
