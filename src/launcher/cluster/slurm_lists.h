#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::launcher {

/// More hosts or tasks than this are a list that no cluster wrote.
inline constexpr std::size_t kMostSlurmEntries = 65'536;

/// The hosts of a list as Slurm writes it: 'a[01-03,7],b5' is a01 a02 a03 a7 b5. Order is kept, leading zeros are as
/// wide as the first number of a range, and of several brackets the last runs fastest. \return empty: not such a list,
/// or one of more than kMostSlurmEntries hosts.
std::optional<std::vector<std::string>> parse_slurm_hosts(std::string_view text);

/// Numbers for each node as Slurm writes them: '3,1(x2)' is 3 1 1. \return empty: not such a list, or too long.
std::optional<std::vector<int>> parse_slurm_counts(std::string_view text);

}  // namespace lrun::launcher
