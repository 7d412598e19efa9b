#include "base/rank_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace lrun::inline core {

std::string format_rank_list(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string text;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += first == last ? fmt::format("{}", ranks[first]) : fmt::format("{}-{}", ranks[first], ranks[last]);
    first = last + 1;
  }
  return text;
}

std::string ranks_text(const std::vector<int>& ranks) {
  const std::string list = format_rank_list(ranks);
  return (list.find_first_of("-,") == std::string::npos ? "rank " : "ranks ") + list;
}

}  // namespace lrun::inline core
