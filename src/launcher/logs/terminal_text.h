#pragma once

#include <string>
#include <string_view>

namespace lrun::launcher {

/// A worker's text as it may be shown inside lrun's own output: it cannot move the cursor, change colours or hide text.
/// Escape sequences (CSI, OSC and two-byte ones) are left out; invalid UTF-8 becomes U+FFFD; other control characters
/// and those that turn the writing direction are shown as '\x07' and '\u202e'. A tab stays. Newlines are not expected.
std::string terminal_safe(std::string_view text);

/// The line as a terminal shows it after it redrew itself with '\r', with its newline.
std::string_view drawn_last(std::string_view line);

/// `text`, or its beginning and '…' that take `columns` columns, a character one column. Escape sequences take none;
/// when something was cut off, colours end.
std::string fitted(std::string_view text, int columns);

}  // namespace lrun::launcher
