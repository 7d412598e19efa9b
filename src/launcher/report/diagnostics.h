#pragma once

#include <string>
#include <string_view>

#include "base/message.h"
#include "base/user_error.h"

namespace lrun::launcher {

/// The error's line and, when it has one, its hint's line.
std::string render(const UserError& error, bool colour);

/// Writes one line to stderr in one write, so that lines of several processes do not mix. Never throws: a closed
/// stderr swallows the line.
void say(Severity severity, std::string_view text) noexcept;

/// The error and its hint on stderr, one write each.
void say(const UserError& error) noexcept;

/// Writes all of `text`, already rendered, to stderr. A closed stderr swallows it.
void write_to_stderr(std::string_view text) noexcept;

/// Writes all of `text` to stdout.
/// \return false when stdout is closed or full, after one line that says so on stderr.
bool print(std::string_view text) noexcept;

}  // namespace lrun::launcher
