#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verdict/last_words.h"

namespace lrun::inline core {

/// The line without '[rank1]: ' and without '[default1]:', which torch puts before the lines of a traceback.
std::string_view without_rank_prefix(std::string_view line);

/// A file of Python itself or of an installed package, by its path as a traceback has it: an error is seldom there.
bool is_foreign_source(std::string_view path);

/// faulthandler's words for a signal, 'Fatal Python error: Segmentation fault': they tell how the process ended, and
/// not why.
bool is_report_of_signal(std::string_view error);

/// An error found in lines, and the index of the line that names it.
struct FoundError {
  std::size_t line = 0;
  LastWords words;
  /// Lines of other things that may follow: where there are more, the program lived on and ended of something else.
  std::size_t most_after = kMostAfterAnError;

  static constexpr std::size_t kMostAfterAnError = 8;  // what libraries say while they are torn down
  static constexpr std::size_t kNoLimit = static_cast<std::size_t>(-1);
};

/// The last Python error in `lines`: a traceback, a syntax error, or a fatal error of the interpreter. What the
/// interpreter only ignored ('Exception ignored in ...') is none. Pure.
std::optional<FoundError> find_python_error(const std::vector<std::string>& lines);

}  // namespace lrun::inline core
