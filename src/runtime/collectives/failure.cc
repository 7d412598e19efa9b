#include "runtime/collectives/failure.h"

#include <lrun/error.h>

#include <algorithm>
#include <cstddef>

namespace lrun {

void Failure::raise() const {
  switch (kind) {
    case Kind::kTimeout:
      throw CollectiveTimeout(text);
    case Kind::kPeerLost:
      throw PeerLost(text);
    case Kind::kMismatch:
      throw CollectiveMismatch(text);
    case Kind::kOther:
      break;
  }
  throw Error(text);
}

std::string name_ranks(const std::vector<int>& ranks) {
  constexpr std::size_t kNamed = 8;
  const std::size_t named = std::min(ranks.size(), kNamed);
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < named; ++i) {
    const bool last = i + 1 == ranks.size();
    text += (i == 0 ? " " : last ? " and " : ", ") + std::to_string(ranks[i]);
  }
  if (ranks.size() > named) text += " and " + std::to_string(ranks.size() - named) + " more";
  return text;
}

}  // namespace lrun
