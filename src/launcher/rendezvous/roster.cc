// In: launchers that join and leave. Out: the members of the next round of the job, and lines about nodes that are
// there or missing. Called by the Coordinator and by Failover.
#include "rendezvous/roster.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>

#include "base/nearest.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostNamed = 16;

}  // namespace

void Roster::add(ConnectionId id, Launcher launcher) {
  ids_[launcher.record.token] = id;
  launchers_.insert_or_assign(id, std::move(launcher));
}

Roster::Launcher Roster::remove(ConnectionId id) {
  const auto found = launchers_.find(id);
  Launcher gone = std::move(found->second);
  launchers_.erase(found);
  ids_.erase(gone.record.token);
  return gone;
}

void Roster::clear() {
  launchers_.clear();
  ids_.clear();
}

std::optional<ConnectionId> Roster::find(const std::string& token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<ConnectionId> Roster::ids() const { return newcomers(nullptr); }

std::vector<ConnectionId> Roster::newcomers(const Round* round) const {
  std::vector<ConnectionId> ids;
  for (const auto& [id, launcher] : launchers_) {
    if (round == nullptr || !round->has(id)) ids.push_back(id);
  }
  return ids;
}

std::vector<ConnectionId> Roster::next_members(const Round* round) const {
  // Members first. Newcomers follow by the ranks that they asked for, so that the leader of ranks 0 to N is no spare,
  // and then in the order in which they came.
  using Candidate = std::tuple<bool, int, ConnectionId>;
  std::vector<Candidate> candidates;
  for (const auto& [id, launcher] : launchers_) {
    const bool is_new = round == nullptr || !round->has(id);
    const int rank = is_new ? launcher.record.node_rank.value_or(kMostNodesOfAJob) : 0;
    if (!launcher.busy) candidates.emplace_back(is_new, rank, id);
  }
  std::sort(candidates.begin(), candidates.end());
  std::vector<ConnectionId> ids;
  std::set<int> ranks;
  std::int64_t workers = 0;
  for (const auto& [is_new, rank, id] : candidates) {
    const JoinRecord& record = launchers_.at(id).record;
    if (static_cast<int>(ids.size()) == most()) break;
    if (is_new && record.node_rank && ranks.count(*record.node_rank) != 0) continue;  // it waits for that rank
    if (workers + record.workers > kMostWorkersOfAJob) continue;
    workers += record.workers;
    if (record.node_rank) ranks.insert(*record.node_rank);
    ids.push_back(id);
  }
  return ids;
}

bool Roster::can_grow(const Round& round) const {
  // Asked for each message: the cheap tests come first.
  if (size() == round.size() || round.size() == most()) return false;
  return static_cast<int>(next_members(&round).size()) > round.size();
}

std::string Roster::substitute(const Round& round) const {
  // Each newcomer takes the place of one lost node, in the order of the losses.
  const auto open = static_cast<std::size_t>(most() - round.size());
  std::vector<std::string> names;
  for (const ConnectionId id : next_members(&round)) {
    if (!round.has(id)) names.push_back(launchers_.at(id).record.node);
  }
  return open > 0 && names.size() >= open ? names[open - 1] : std::string();
}

std::string Roster::newcomers_text(const std::vector<ConnectionId>& ids, const Round& round) const {
  std::vector<std::string> names;
  for (const ConnectionId id : ids) {
    if (!round.has(id)) names.push_back(launchers_.at(id).record.node);
  }
  return join_first(names, kMostNamed);
}

std::string Roster::joined_text() const {
  if (empty()) return "no node has joined";
  std::vector<std::string> joined;
  for (const auto& [id, launcher] : launchers_) joined.push_back(describe(launcher.record));
  return "joined: " + join_first(joined, kMostNamed);
}

std::string Roster::missing_text(int spares, const std::vector<std::string>& hosts) const {
  const int needed = least() + spares;
  const int all = most() + spares;
  if (size() >= needed) return {};
  std::string text = "; missing: " + std::to_string(needed - size()) + " of " + (needed < all ? "at least " : "") +
                     std::to_string(needed) + " " + unit_of(is_of_ranks(), needed);
  std::set<int> ranks;
  for (const auto& [id, launcher] : launchers_) {
    if (launcher.record.node_rank) ranks.insert(*launcher.record.node_rank);
  }
  // The missing ranks are known only where every launcher asked for one and all nodes are needed.
  if (static_cast<int>(ranks.size()) != size() || needed < all) return text;
  std::string missing;
  std::size_t named = 0;
  for (int rank = 0; rank < all && named < kMostNamed; ++rank) {
    if (ranks.count(rank) != 0) continue;
    missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    if (static_cast<std::size_t>(rank) < hosts.size()) missing += " on " + hosts[static_cast<std::size_t>(rank)];
    ++named;
  }
  return text + (is_of_ranks() ? " (rank " : " (node rank ") + missing + ")";
}

}  // namespace lrun::launcher
