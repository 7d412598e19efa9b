#pragma once

#include <algorithm>
#include <string_view>

namespace lrun::inline core {

/// Whether one of the words, each a std::string_view, stands in the line.
bool has_any(std::string_view line, const auto& all_words) {
  return std::any_of(all_words.begin(), all_words.end(),
                     [&](std::string_view words) { return line.find(words) != std::string_view::npos; });
}

}  // namespace lrun::inline core
