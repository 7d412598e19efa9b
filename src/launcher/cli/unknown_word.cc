#include "cli/unknown_word.h"

#include <algorithm>
#include <utility>

#include "base/nearest.h"

namespace lrun::launcher {

UnknownWord::UnknownWord(std::string before_word, std::string unknown, std::string after_word, std::string hint)
    : UserError(before_word + " '" + unknown + "'" + after_word, std::move(hint)),
      before(std::move(before_word)),
      word(std::move(unknown)),
      after(std::move(after_word)) {}

UserError error_about(const std::vector<UnknownWord>& unknown) {
  constexpr std::size_t kMostNamed = 5;
  const UnknownWord& first = unknown.front();
  std::vector<std::string> names;
  for (const UnknownWord& one : unknown) {
    const std::string name = "'" + one.word + "'";
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (names.size() == 1) return first;
  return {first.before + "s " + join_first(names, kMostNamed, " and ") + first.after,
          names.front() + ": " + first.hint()};
}

}  // namespace lrun::launcher
