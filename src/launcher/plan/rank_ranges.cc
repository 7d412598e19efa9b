#include "plan/rank_ranges.h"

#include <algorithm>

#include "base/split.h"
#include "base/user_error.h"
#include "base/whole_number.h"

namespace lrun::launcher {

std::optional<RankRanges> parse_ranks(std::string_view text) {
  RankRanges ranks;
  for (const std::string_view field : fields_of(text)) {
    const std::size_t dash = std::min(field.find('-'), field.size());
    const auto first = natural_number(field.substr(0, dash));
    const auto last = dash == field.size() ? first : natural_number(field.substr(dash + 1));
    if (!first || !last || *first > *last) return std::nullopt;
    ranks.emplace_back(*first, *last);
  }
  return ranks;
}

bool has_rank(const RankRanges& ranks, int rank) {
  return std::any_of(ranks.begin(), ranks.end(),
                     [rank](const auto& range) { return range.first <= rank && rank <= range.second; });
}

void check_ranks(const RankRanges& ranks, const std::string& origin, int world_size) {
  for (const auto& [first, last] : ranks) {
    if (last < world_size) continue;
    throw UserError("'" + origin + "': there is no rank " + std::to_string(last),
                    "this run has the ranks 0 to " + std::to_string(world_size - 1));
  }
}

}  // namespace lrun::launcher
