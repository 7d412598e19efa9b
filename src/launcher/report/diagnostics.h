#pragma once

#include <string>
#include <string_view>

#include "base/duration.h"
#include "base/user_error.h"
#include "report/message_sink.h"

namespace lrun::launcher {

/// The error's line and, when it has one, its hint's line.
std::string render(const UserError& error, bool colour);

/// Writes all of `text` to stdout.
/// \return false when stdout is closed or full, after one line about that through `sink`.
bool print_to_stdout(std::string_view text, MessageSink& sink) noexcept;

/// Waits for a moment between two looks at something. \return false as soon as nobody reads stdout any more.
bool wait_while_stdout_is_read(Duration moment) noexcept;

}  // namespace lrun::launcher
