#include "rendezvous/rejoin_backoff.h"

#include <algorithm>

namespace lrun::launcher {
namespace {

std::string key_of(const JoinRecord& node) {
  const std::string rank = node.node_rank ? std::to_string(*node.node_rank) : "any";
  return node.node + '\0' + node.address + '\0' + rank;
}

}  // namespace

void RejoinBackoff::note(const JoinRecord& node, SteadyTime now) {
  // Nodes that left long ago are forgotten: the table does not grow for ever.
  std::erase_if(left_, [now](const auto& entry) { return now - entry.second.back() >= kWindow; });
  std::deque<SteadyTime>& times = left_[key_of(node)];
  times.push_back(now);
  while (times.size() > kMost) times.pop_front();
}

Duration RejoinBackoff::wait(const JoinRecord& node, SteadyTime now) const {
  const auto found = left_.find(key_of(node));
  if (found == left_.end() || found->second.size() < kMost) return Duration::zero();
  const auto rest = found->second.front() + kWindow - now;
  return std::max<Duration>(std::chrono::ceil<std::chrono::seconds>(rest), Duration::zero());
}

std::string RejoinBackoff::limit_text() { return std::to_string(kMost) + " times within " + format_duration(kWindow); }

}  // namespace lrun::launcher
