#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lrun::launcher {

/// The ranks that an option is for: first and last of each range.
using RankRanges = std::vector<std::pair<int, int>>;

/// Reads '0', '0,2' or '0,4-7'. Empty for any other text.
std::optional<RankRanges> parse_ranks(std::string_view text);

/// One of the ranges has the rank.
bool has_rank(const RankRanges& ranks, int rank);

/// \param origin  the option that names the ranks
/// \throws UserError  one of them does not exist in a run of `world_size`
void check_ranks(const RankRanges& ranks, const std::string& origin, int world_size);

}  // namespace lrun::launcher
