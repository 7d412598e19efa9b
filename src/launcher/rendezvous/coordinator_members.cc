// Which of those that are there take part in the next round of a coordinator, and how long it waits for more.
#include <algorithm>
#include <set>
#include <tuple>

#include "rendezvous/coordinator.h"

namespace lrun::launcher {

std::vector<LauncherId> Coordinator::all_launchers() const {
  std::vector<LauncherId> all;
  for (const auto& [id, launcher] : launchers_) all.push_back(id);
  return all;
}

/// Of those that are here, and of one that stands for those that were sent on.
std::vector<const JoinRecord*> Coordinator::records_of_job() const {
  std::vector<const JoinRecord*> records;
  for (const auto& [id, launcher] : launchers_) records.push_back(&launcher.record);
  if (first_) records.push_back(&*first_);
  return records;
}

/// Those of the last round that are still there, and as many newcomers as there is a place for: by the ranks that they
/// asked for, so that the holder of a meeting of ranks 0 to N is no spare, then in the order in which they came. Who
/// asked for a rank that is taken waits.
std::vector<LauncherId> Coordinator::next_members() const {
  using Candidate = std::tuple<bool, int, LauncherId>;
  std::vector<Candidate> candidates;
  for (const auto& [id, launcher] : launchers_) {
    const int rank = launcher.in_round ? 0 : launcher.record.node_rank.value_or(kMostNodesOfAJob);
    if (!launcher.busy) candidates.emplace_back(!launcher.in_round, rank, id);
  }
  std::sort(candidates.begin(), candidates.end());
  std::vector<LauncherId> ids;
  std::set<int> ranks;
  std::int64_t workers = 0;
  for (const auto& [is_new, rank, id] : candidates) {
    const JoinRecord& record = launchers_.at(id).record;
    if (static_cast<int>(ids.size()) == most()) break;
    if (is_new && record.node_rank && ranks.count(*record.node_rank) != 0) continue;
    if (workers + record.workers > kMostWorkersOfAJob) continue;
    workers += record.workers;
    if (record.node_rank) ranks.insert(*record.node_rank);
    ids.push_back(id);
  }
  return ids;
}

/// For enough nodes.
bool Coordinator::last_call_is_over(std::size_t nodes, SteadyTime now) {
  last_call_.enough(now);
  return static_cast<int>(nodes) == most() || now >= last_call_.end();
}

/// Of the first round.
bool Coordinator::first_call_is_over(std::size_t nodes, SteadyTime now) {
  if (times_.spares == 0) return last_call_is_over(nodes, now);
  last_call_.enough(now);
  return static_cast<int>(launchers_.size()) >= most() + times_.spares || now >= first_call_end();
}

SteadyTime Coordinator::first_call_end() const {
  return times_.spares == 0 ? last_call_.end() : last_call_.since() + times_.for_spares;
}

}  // namespace lrun::launcher
