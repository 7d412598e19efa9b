// What a coordinator says about the nodes of its job.
#include <algorithm>
#include <set>
#include <utility>

#include "base/nanoseconds.h"
#include "base/nearest.h"
#include "rendezvous/admission.h"
#include "rendezvous/coordinator.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostNodesInWords = 16;
constexpr std::size_t kMostRefusalsInWords = 3;

}  // namespace

void Coordinator::tell_spare(LauncherId who) {
  const std::string all = nodes_in_words(least(), most());
  const std::vector<LauncherId> ids = next_members();
  const bool has_place = std::find(ids.begin(), ids.end(), who) != ids.end() && !stopped_ &&
                         (phase_ == Phase::kDeciding || !some_reported_);
  const std::string difference = difference_of_commands(launchers_.at(who).record, launchers_.begin()->second.record);
  send(who, {.kind = LauncherMessage::Kind::kSpare,
             .text = "the job runs with " + std::to_string(members_) + " of " + all + " nodes: this one " +
                     (has_place ? "joins it in a moment" : "waits until it is needed") +
                     (difference.empty() ? "" : "; " + difference),
             .successors = successors_});
}

void Coordinator::tell_loss(const JoinRecord& gone, const std::string& how, SteadyTime now, SteadyTime heard) {
  std::string text = how;
  if (rejoin_backoff_.wait(gone, now) > Duration::zero()) {
    text += "; it has left the job " + RejoinBackoff::limit_in_words() + " and is not let in for a while";
  }
  send_to_members({.kind = LauncherMessage::Kind::kLost,
                   .round = round_,
                   .text = std::move(text),
                   .node = name_of(gone),
                   .spare = substitute(),
                   .steady_ns = nanoseconds(heard)});
}

/// '; node 'b' from 10.0.0.2 (1 worker) was turned away: …'; of the last ones.
std::string Coordinator::refusals_in_words() const {
  std::string text;
  const std::size_t first = noted_.size() - std::min(noted_.size(), kMostRefusalsInWords);
  for (std::size_t i = first; i < noted_.size(); ++i) text += "; " + noted_[i];
  return text;
}

/// Who takes the place of the node that was lost last, and nobody else's; empty: nobody does.
std::string Coordinator::substitute() const {
  const auto open = static_cast<std::size_t>(most() - members_);
  std::vector<std::string> names;
  for (const LauncherId id : next_members()) {
    const Launcher& launcher = launchers_.at(id);
    if (!launcher.in_round) names.push_back(launcher.record.node);
  }
  return open > 0 && names.size() >= open ? names[open - 1] : std::string();
}

std::string Coordinator::newcomers_in_words(const std::vector<LauncherId>& ids) const {
  std::vector<std::string> names;
  for (const LauncherId id : ids) {
    const Launcher& launcher = launchers_.at(id);
    if (!launcher.in_round) names.push_back(launcher.record.node);
  }
  return join_first(names, kMostNodesInWords);
}

/// '; missing: 1 of 2 nodes (node rank 1)'; empty: enough are there. \param spares  that are to be there, too
std::string Coordinator::missing_in_words(int spares) const {
  const int needed = least() + spares;
  const int all = most() + spares;
  const int count = static_cast<int>(launchers_.size());
  if (count >= needed) return {};
  const bool of_ranks = launchers_.begin()->second.record.of_rank;
  std::string text = "; missing: " + std::to_string(needed - count) + " of " + (needed < all ? "at least " : "") +
                     std::to_string(needed) + " " + unit_of(of_ranks, needed);
  std::set<int> ranks;
  for (const auto& [id, launcher] : launchers_) {
    if (launcher.record.node_rank) ranks.insert(*launcher.record.node_rank);
  }
  if (static_cast<int>(ranks.size()) != count || needed < all) return text;
  std::string missing;
  std::size_t told = 0;
  for (int rank = 0; rank < all && told < kMostNodesInWords; ++rank) {
    if (ranks.count(rank) != 0) continue;
    missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    ++told;
  }
  return text + (of_ranks ? " (rank " : " (node rank ") + missing + ")";
}

std::string Coordinator::who_is_there() const {
  if (launchers_.empty()) return "nobody has joined";
  std::vector<std::string> joined;
  for (const auto& [id, launcher] : launchers_) joined.push_back(in_words(launcher.record));
  std::string text = "joined: " + join_first(joined, kMostNodesInWords);
  const int spares = phase_ == Phase::kMeeting ? times_.spares : 0;
  const bool gathers = phase_ == Phase::kMeeting || phase_ == Phase::kDeciding;
  if (!gathers || static_cast<int>(launchers_.size()) >= most() + spares) return text;
  return text + missing_in_words(spares) + refusals_in_words();
}

}  // namespace lrun::launcher
