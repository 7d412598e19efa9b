#include "cli/unknown_word.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/nearest.h"

namespace lrun::launcher {

namespace {

constexpr std::size_t kMostNamed = 5;

std::string first_words(const std::vector<std::string>& words) { return join_first(words, kMostNamed, " and "); }

bool has_name(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Names the near words of all that have one; where the first has none, it is the hint about that alone.
std::string hint_about(const std::vector<UnknownWord>& unknown, std::size_t names) {
  constexpr std::string_view kBefore = "did you mean ";
  std::vector<std::string> words;
  std::vector<std::string> meant;
  std::string remark;  // what one of the near words does
  for (const UnknownWord& one : unknown) {
    const std::string_view hint = one.hint();
    const std::string word = "'" + one.word + "'";
    const std::size_t end = hint.find("'?");  // behind it may stand what the near word does
    if (!hint.starts_with(kBefore) || end == std::string_view::npos || has_name(words, word)) continue;
    words.push_back(word);
    const std::string near(hint.substr(kBefore.size(), end + 1 - kBefore.size()));
    if (!has_name(meant, near)) meant.push_back(near);
    constexpr std::string_view kIt = "'? it";
    if (hint.substr(end).starts_with(kIt)) remark = " " + near + std::string(hint.substr(end + kIt.size()));
  }
  const std::string first = "'" + unknown.front().word + "'";
  if (words.empty() || words.front() != first) return first + ": " + unknown.front().hint();
  return (words.size() == names ? "" : first_words(words) + ": ") + std::string(kBefore) + first_words(meant) + "?" +
         remark;
}

}  // namespace

UnknownWord::UnknownWord(std::string before_word, std::string unknown, std::string after_word, std::string hint)
    : UserError(before_word + " '" + unknown + "'" + after_word, std::move(hint)),
      before(std::move(before_word)),
      word(std::move(unknown)),
      after(std::move(after_word)) {}

UserError error_about(const std::vector<UnknownWord>& unknown) {
  const UnknownWord& first = unknown.front();
  std::vector<std::string> names;
  for (const UnknownWord& one : unknown) {
    const std::string name = "'" + one.word + "'";
    if (!has_name(names, name)) names.push_back(name);
  }
  if (names.size() == 1) return first;
  return {first.before + "s " + first_words(names) + first.after, hint_about(unknown, names.size())};
}

}  // namespace lrun::launcher
