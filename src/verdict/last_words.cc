#include "verdict/last_words.h"

#include <optional>
#include <utility>

#include "verdict/native_error.h"
#include "verdict/python_traceback.h"

namespace lrun {

LastWords find_last_words(const std::vector<std::string>& lines) {
  std::optional<FoundError> python = find_python_error(lines);
  std::optional<FoundError> native = find_native_error(lines);
  // An exception's own text may hold words of the other kind: what begins inside the traceback belongs to it.
  if (python && native && native->line <= python->line + 2) native.reset();
  if (native) return std::move(native->words);
  if (python) return std::move(python->words);
  LastWords words;
  for (std::size_t i = lines.size(); i-- > 0 && words.lines.size() < LastWords::kMostLines;) {
    if (words.lines.empty() && lines[i].empty()) continue;
    words.lines.insert(words.lines.begin(), lines[i]);
  }
  return words;
}

}  // namespace lrun
