#pragma once

#include <string>
#include <vector>

namespace lrun::inline core {

/// What a worker said about its own end: the error it printed, found among its last lines.
struct LastWords {
  std::string error;               ///< 'ValueError: bad batch', one line; empty when nothing says it
  std::string location;            ///< 'train.py:12 in step'; empty when unknown
  std::vector<std::string> lines;  ///< the decisive lines, oldest first; the last lines when nothing says it

  /// Shown in a verdict: more would push the rest of it off the screen.
  static constexpr std::size_t kMostLines = 8;

  bool operator==(const LastWords&) const = default;
};

/// Finds in the last lines of a worker the error that ended it: a Python traceback (the innermost frame and the
/// exception, with the innermost frame of the user's own, which gives the location; nothing has to be decorated), an
/// uncaught C++ exception with its what(), a failed assertion, a sanitizer's or the C library's report, a panic, what
/// the dynamic loader could not find. Where there are several, the last; one that too much
/// else follows was overcome, and is none. Pure.
/// \param may_be_an_exception  false: the program ended in a way that no exception of Python ends it.
LastWords find_last_words(const std::vector<std::string>& lines, bool may_be_an_exception = true);

}  // namespace lrun::inline core
