#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lrun::inline core {

/// The line on stderr in which a program that ended by its own will said why: 'train.py: error: the following arguments
/// are required: --lr', 'fatal: no such configuration', 'ls: cannot access 'x': No such file or directory', 'no data at
/// train.pl line 3.'; 'make: *** [Makefile:3: all] Error 2' where the recipe said nothing. Empty when nothing is marked
/// like that, or other things were printed after it. Pure.
/// \param last_lines       what was printed last
/// \param error_lines      those of them that came on stderr
/// \param may_be_unmarked  the very last line is enough, as of Python's sys.exit('text'), unless it looks like a log's
///                         or a progress bar's
std::string find_plain_error(const std::vector<std::string>& last_lines, const std::vector<std::string>& error_lines,
                             bool may_be_unmarked);

/// True of 'error: text', 'Error: text', 'FATAL: text' and the like, also behind a program's name: 'train: error:
/// text'.
bool is_marked_as_error(std::string_view line);

}  // namespace lrun::inline core
