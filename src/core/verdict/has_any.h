#pragma once

#include <algorithm>
#include <string_view>

namespace lrun::inline core {

/// True when the line contains one of the words, each a std::string_view.
bool has_any(std::string_view line, const auto& all_words) {
  return std::any_of(all_words.begin(), all_words.end(),
                     [&](std::string_view words) { return line.find(words) != std::string_view::npos; });
}

}  // namespace lrun::inline core
