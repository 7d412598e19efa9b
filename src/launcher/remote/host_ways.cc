#include "remote/host_ways.h"

#include <algorithm>

namespace lrun::launcher {

std::vector<int> host_ways(const std::vector<bool>& here, std::size_t most) {
  std::vector<int> elsewhere;
  for (std::size_t i = 0; i < here.size(); ++i) {
    if (!here[i]) elsewhere.push_back(static_cast<int>(i));
  }
  std::vector<int> ways(here.size(), kFromHead);
  std::size_t begin = 0;  // of the hosts that are as far as the last ones that have a way
  std::size_t end = std::min(most, elsewhere.size());
  while (end < elsewhere.size()) {
    const std::size_t width = end - begin;
    const std::size_t next_end = elsewhere.size() - end > width * most ? end + width * most : elsewhere.size();
    for (std::size_t i = end; i < next_end; ++i) {
      ways[static_cast<std::size_t>(elsewhere[i])] = elsewhere[begin + (i - end) % width];
    }
    begin = end;
    end = next_end;
  }
  return ways;
}

}  // namespace lrun::launcher
