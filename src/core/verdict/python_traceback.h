#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verdict/printed_error.h"

namespace lrun::inline core {

/// The line without '[rank1]: ' and without '[default1]:', which torch puts before the lines of a traceback.
std::string_view without_rank_prefix(std::string_view line);

/// True for a file of Python itself or of an installed package, by its path in a traceback: errors are rarely there.
bool is_foreign_source(std::string_view path);

/// True for faulthandler's line about a signal, 'Fatal Python error: Segmentation fault': how the process ended, not
/// why.
bool is_report_of_signal(std::string_view error);

/// An error found in lines, and the index of the line that names it.
struct FoundError {
  std::size_t line = 0;
  PrintedError printed;
  /// How many other lines may follow: after more of them, the program went on and ended for another reason.
  std::size_t most_after = kMostAfterAnError;

  static constexpr std::size_t kMostAfterAnError = 8;  // libraries print while they are torn down
  static constexpr std::size_t kNoLimit = static_cast<std::size_t>(-1);
};

/// The lines but for 'Exception ignored in ...' and its traceback: an error that the interpreter reports while it frees
/// an object does not end a program. Pure.
std::vector<std::string> without_ignored_errors(const std::vector<std::string>& lines);

/// The last Python error in `lines`: a traceback, a syntax error, or a fatal error of the interpreter. Pure.
std::optional<FoundError> find_python_error(const std::vector<std::string>& lines);

}  // namespace lrun::inline core
