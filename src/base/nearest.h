#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lrun {

/// The candidate most like `word` by edit distance (insert, delete, replace, swap of neighbours; '-' and '_' are
/// equal), for "did you mean". Empty when none is near: at most a third of the word's letters may differ.
std::optional<std::string> nearest_word(std::string_view word, const std::vector<std::string>& candidates);

/// 'a, b and c', for lists in messages.
std::string join_words(const std::vector<std::string>& words, std::string_view last_separator = " and ");

}  // namespace lrun
