#pragma once

#include <string>
#include <vector>

namespace lrun::inline core {

/// {0, 1, 2, 5} → '0-2,5'. Order and repetitions do not matter.
std::string format_rank_list(std::vector<int> ranks);

/// 'rank 3', 'ranks 0-2,5'.
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace lrun::inline core
