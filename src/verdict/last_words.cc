#include "verdict/last_words.h"

#include <optional>
#include <string_view>
#include <utility>

#include "verdict/native_error.h"
#include "verdict/python_traceback.h"

namespace lrun {
namespace {

constexpr std::string_view kThreadsLeft = "terminate called without an active exception";

/// An exception's own text may hold words of the other kind: what begins inside the traceback belongs to it. And when
/// an exception ends a program, its threads may be torn down badly.
bool belongs_to(const FoundError& python, const FoundError& native) {
  return native.line <= python.line + 2 || native.words.error == kThreadsLeft;
}

LastWords last_lines(const std::vector<std::string>& lines) {
  LastWords words;
  for (std::size_t i = lines.size(); i-- > 0 && words.lines.size() < LastWords::kMostLines;) {
    if (words.lines.empty() && lines[i].empty()) continue;
    words.lines.insert(words.lines.begin(), lines[i]);
  }
  return words;
}

}  // namespace

LastWords find_last_words(const std::vector<std::string>& lines) {
  std::optional<FoundError> python = find_python_error(lines);
  std::optional<FoundError> native = find_native_error(lines);
  if (python && (!native || belongs_to(*python, *native))) return std::move(python->words);
  if (native) return std::move(native->words);
  return last_lines(lines);
}

}  // namespace lrun
