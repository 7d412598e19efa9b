#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::launcher {

/// A longer list of hosts or tasks is not taken for one.
inline constexpr std::size_t kMostSlurmEntries = 65'536;

/// The hosts of a list as Slurm writes it: 'a[01-03,7],b5' is a01 a02 a03 a7 b5. The order is kept. Numbers are as wide
/// as the first of their range. With several brackets the last one runs fastest. \return empty when `text` is not such
/// a list, or has more than kMostSlurmEntries hosts.
std::optional<std::vector<std::string>> parse_slurm_hosts(std::string_view text);

/// A number for each node as Slurm writes them: '3,1(x2)' is 3 1 1. \return empty when `text` is not such a list, or is
/// too long.
std::optional<std::vector<int>> parse_slurm_counts(std::string_view text);

}  // namespace lrun::launcher
