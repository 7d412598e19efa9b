#pragma once

#include <string>
#include <string_view>

#include "base/user_error.h"

namespace lrun {

enum class Severity { kError, kWarning, kNote, kHint };

/// 'lrun: error: text' with its newline; control characters in the text are written as '\n', '\x1b'.
std::string diagnostic_line(Severity severity, std::string_view text, bool colour);

/// The error's line and, when it has one, its hint's line.
std::string render(const UserError& error, bool colour);

/// True when `fd` is a terminal that takes colour: not under NO_COLOR (set and not empty) or TERM=dumb.
bool takes_colour(int fd);

/// Writes one line to stderr in one write, so that lines of several processes do not mix. Never throws: a closed
/// stderr swallows the line.
void say(Severity severity, std::string_view text) noexcept;

/// The error and its hint on stderr, one write each.
void say(const UserError& error) noexcept;

/// Writes all of `text` to stdout.
/// \return false when stdout is closed or full.
bool print(std::string_view text) noexcept;

}  // namespace lrun
