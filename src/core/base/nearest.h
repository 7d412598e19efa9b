#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/user_error.h"

namespace lrun::inline core {

/// The candidate most like `word` by edit distance (insert, delete, replace, swap of neighbours; '-' and '_' are
/// equal), for "did you mean". Empty when none is near: at most a third of the word's letters may differ, where dashes
/// at its begin do not count.
std::optional<std::string> nearest_word(std::string_view word, const std::vector<std::string>& candidates);

/// "did you mean 'ddp'?"
std::string did_you_mean(std::string_view word);

/// The same with the candidate nearest to `word`; `otherwise` where none is near.
std::string nearest_hint(std::string_view word, const std::vector<std::string>& candidates,
                         std::string_view otherwise = {});

/// A hint about a blank in `word` that looks like a plain one and is part of it: U+00A0, as in text from web pages.
/// Empty: it has none.
std::string hint_about_pasted_blank(std::string_view word);

/// The error about a word that is none of `choices`: its hint is the nearest of them, or `otherwise`.
UserError choice_error(const std::string& problem, std::string_view word, const std::vector<std::string>& choices,
                       std::string_view otherwise);

/// '1 worker', '2 workers'. For words with a regular plural.
template <class Count>
std::string counted(Count count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

/// 'a, b and c', for lists in messages.
std::string join_words(const std::vector<std::string>& words, std::string_view last_separator = " and ");

/// 'a, b, c', or 'a, b and 7 more' where there are more than `most`, for lists in messages that may be long.
/// \param last_separator  before the last one of a list that is told whole.
std::string join_first(const std::vector<std::string>& words, std::size_t most, std::string_view last_separator = ", ");

}  // namespace lrun::inline core
