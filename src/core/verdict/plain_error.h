#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lrun::inline core {

/// The line on stderr in which a program gave the reason for its exit: 'train.py: error: the following arguments are
/// required: --lr', 'fatal: no such configuration', 'ls: cannot access 'x': No such file or directory', 'no data at
/// train.pl line 3.'; 'make: *** [Makefile:3: all] Error 2' when the recipe printed nothing. Empty when no line looks
/// like that, or when other lines follow it. Pure.
/// \param last_lines       the last output
/// \param error_lines      the lines of it that came from stderr
/// \param may_be_unmarked  the very last line is enough, as after Python's sys.exit('text'), unless it looks like a
///                         line of a log or of a progress bar
std::string find_plain_error(const std::vector<std::string>& last_lines, const std::vector<std::string>& error_lines,
                             bool may_be_unmarked);

/// True for 'error: text', 'Error: text', 'FATAL: text' and the like, also behind a program's name: 'train: error:
/// text'.
bool is_marked_as_error(std::string_view line);

}  // namespace lrun::inline core
