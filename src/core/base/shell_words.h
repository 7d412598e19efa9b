#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::inline core {

/// Splits a command line into words as a POSIX shell would quote them: blanks separate; inside '…' everything stands
/// for itself; inside "…" a backslash protects only '"', '\', '$' and '`'; elsewhere it protects the next character.
/// Nothing is expanded: '$HOME', '*' and '~' stay. Empty when a quote is not closed or a backslash ends the text.
std::optional<std::vector<std::string>> split_shell_words(std::string_view text);

/// A word for any shell that people have as their login shell.
std::string quoted_for_shell(std::string_view word);

/// Words as one would type them: in quotes only where a POSIX shell needs them.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace lrun::inline core
