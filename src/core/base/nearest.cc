#include "base/nearest.h"

#include <algorithm>
#include <cstddef>

namespace lrun::inline core {
namespace {

char folded(char letter) { return letter == '_' ? '-' : letter; }

/// Optimal string alignment distance. Words are bounded by the caller.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = folded(a[i - 1]) == folded(b[j - 1]);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (same ? 0U : 1U)});
      const bool swapped =
          i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1]);
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::optional<std::string> nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestWord = 64;  // the distance is quadratic; nobody misspells a longer one
  if (word.empty() || word.size() > kLongestWord) return std::nullopt;
  std::optional<std::string> best;
  const std::size_t letters = word.size() - std::min(word.find_first_not_of('-'), word.size());
  std::size_t best_distance = std::max<std::size_t>(1, letters / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestWord) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word) { return "did you mean '" + std::string(word) + "'?"; }

std::string nearest_hint(std::string_view word, const std::vector<std::string>& candidates,
                         std::string_view otherwise) {
  const auto nearest = nearest_word(word, candidates);
  return nearest ? did_you_mean(*nearest) : std::string(otherwise);
}

std::string hint_about_pasted_blank(std::string_view word) {
  if (word.find("\u00a0") == std::string_view::npos) return {};
  return "it has a no-break space (U+00A0), often pasted from a page: type the blank anew";
}

UserError choice_error(const std::string& problem, std::string_view word, const std::vector<std::string>& choices,
                       std::string_view otherwise) {
  return {problem, nearest_hint(word, choices, otherwise)};
}

std::string join_words(const std::vector<std::string>& words, std::string_view last_separator) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? last_separator : std::string_view(", ");
    text += words[i];
  }
  return text;
}

std::string join_first(const std::vector<std::string>& words, std::size_t most, std::string_view last_separator) {
  if (words.size() <= most) return join_words(words, last_separator);
  const std::vector<std::string> first(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(most));
  return join_words(first, ", ") + " and " + std::to_string(words.size() - most) + " more";
}

}  // namespace lrun::inline core
