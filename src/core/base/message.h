#pragma once

#include <string>
#include <string_view>

namespace lrun::inline core {

enum class Severity { kError, kWarning, kNote, kHint };

/// 'lrun: error: text' with its newline: the only form in which lrun speaks, one fact a line. Control characters in the
/// text are written as '\n', '\x1b', those that turn the writing direction as '\u202e', bytes that are no UTF-8 as
/// '\xff'. The caller keeps `text` lower case and without a full stop.
std::string message_line(Severity severity, std::string_view text, bool colour = false);

/// False with NO_COLOR (set and not empty), with TERM=dumb and without TERM: then no terminal of this process gets
/// colour.
bool wants_colour();

/// True when `fd` is a terminal that takes colour.
bool takes_colour(int fd);

}  // namespace lrun::inline core
