#include "plan/rank_streams.h"

#include <algorithm>

#include "base/split.h"
#include "base/whole_number.h"

namespace lrun::launcher {
namespace {

std::optional<RankStreams::Streams> parse_streams(std::string_view text) {
  if (text.size() != 1 || text.front() < '0' || text.front() > '3') return std::nullopt;
  return static_cast<RankStreams::Streams>(text.front() - '0');
}

}  // namespace

bool RankStreams::has(int local_rank, LogStream stream) const {
  const Streams bit = stream == LogStream::kOut ? 1 : 2;
  if (by_rank.empty()) return (all & bit) != 0;
  const auto entry = std::find_if(by_rank.rbegin(), by_rank.rend(),
                                  [&](const auto& candidate) { return candidate.first == local_rank; });
  return entry != by_rank.rend() && (entry->second & bit) != 0;
}

std::optional<RankStreams> parse_rank_streams(std::string_view text) {
  RankStreams result;
  if (const auto streams = parse_streams(text)) {
    result.all = *streams;
    return result;
  }
  for (const std::string_view entry : fields_of(text)) {
    const std::size_t colon = entry.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto rank = natural_number(entry.substr(0, colon));
    const auto streams = parse_streams(entry.substr(colon + 1));
    if (!rank || !streams) return std::nullopt;
    result.by_rank.emplace_back(*rank, *streams);
  }
  return result;
}

}  // namespace lrun::launcher
