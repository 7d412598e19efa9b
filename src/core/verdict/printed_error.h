#pragma once

#include <string>
#include <vector>

namespace lrun::inline core {

/// The error that a worker printed before it ended, found in its last lines.
struct PrintedError {
  std::string error;               ///< 'ValueError: bad batch', one line; empty when none was found
  std::string location;            ///< 'train.py:12 in step'; empty when unknown
  std::vector<std::string> lines;  ///< the decisive lines, oldest first; without an error the last lines

  /// More lines would push the rest of the verdict off the screen.
  static constexpr std::size_t kMostLines = 8;

  bool operator==(const PrintedError&) const = default;
};

/// Finds the error that ended a worker in its last lines: a Python traceback (the innermost frame and the exception,
/// and the innermost frame of the user's own code, which gives the location), an uncaught C++ exception with its
/// what(), a failed assertion, a report of a sanitizer or of the C library, a panic, a library that the dynamic loader
/// did not find. The last error counts. An error does not count when many other lines follow: the program went on after
/// it. Pure.
/// \param may_be_an_exception  false: a Python exception would not have ended the program in this way
PrintedError find_printed_error(const std::vector<std::string>& lines, bool may_be_an_exception = true);

}  // namespace lrun::inline core
