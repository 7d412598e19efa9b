// What a coordinator says about the nodes of its job.
#include <set>

#include "base/nearest.h"
#include "rendezvous/admission.h"
#include "rendezvous/coordinator.h"

namespace lrun {
namespace {

constexpr std::size_t kMostNodesInWords = 16;

}  // namespace

std::string Coordinator::newcomers_in_words(const std::vector<LauncherId>& ids) const {
  std::vector<std::string> names;
  for (const LauncherId id : ids) {
    const Launcher& launcher = launchers_.at(id);
    if (!launcher.in_round) names.push_back(launcher.record.node);
  }
  return join_first(names, kMostNodesInWords);
}

std::string Coordinator::who_is_there() const {
  std::vector<std::string> joined;
  std::set<int> ranks;
  for (const auto& [id, launcher] : launchers_) {
    if (launcher.record.node_rank) ranks.insert(*launcher.record.node_rank);
    joined.push_back(in_words(launcher.record));
  }
  std::string text = launchers_.empty() ? "nobody has joined" : "joined: " + join_first(joined, kMostNodesInWords);
  const int count = static_cast<int>(launchers_.size());
  const bool gathers = phase_ == Phase::kMeeting || phase_ == Phase::kDeciding;
  if (!gathers || launchers_.empty() || count >= most()) return text;
  const bool of_ranks = launchers_.begin()->second.record.of_rank;
  text += "; missing: " + std::to_string(most() - count) + " of " + std::to_string(most()) + " " +
          unit_of(of_ranks, most());
  if (static_cast<int>(ranks.size()) != count || ranks.empty()) return text;
  std::string missing;
  std::size_t told = 0;
  for (int rank = 0; rank < most() && told < kMostNodesInWords; ++rank) {
    if (ranks.count(rank) != 0) continue;
    missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    ++told;
  }
  return text + (of_ranks ? " (rank " : " (node rank ") + missing + ")";
}

}  // namespace lrun
