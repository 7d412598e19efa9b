// In: the members of a round, and their messages about it. Out: whether all have reported, are ready or know of the
// round, and the text that is made of the reports. Called by the Coordinator.
#include "rendezvous/round.h"

#include <utility>

namespace lrun::launcher {
namespace {

/// Reports that are kept before one is made of them: the memory of a leader must not grow with its nodes.
constexpr std::size_t kMostBytesOfReports = std::size_t{1} << 20U;

}  // namespace

Round::Round(int number, const std::vector<ConnectionId>& by_rank, const Round* before, bool known_to_all,
             std::vector<Successor> successors)
    : number_(number),
      began_with_(static_cast<int>(by_rank.size())),
      successors_(std::move(successors)),
      known_to_all_(known_to_all),
      missing_reports_(began_with_) {
  int rank = 0;
  for (const ConnectionId id : by_rank) {
    const int since = before != nullptr && before->has(id) ? before->member(id).since : number;
    members_.emplace(id, Member{.node_rank = rank++, .since = since});
  }
}

Round Round::lost(int number) {
  Round round;
  round.number_ = number;
  round.goes_on_ = true;  // no member asked for its end: it ended with its leader
  return round;
}

std::vector<ConnectionId> Round::members(ConnectionId except) const {
  std::vector<ConnectionId> ids;
  for (const auto& [id, member] : members_) {
    if (id != except) ids.push_back(id);
  }
  return ids;
}

void Round::readmit(ConnectionId id, int round) {
  number_ = std::max(number_, round);
  members_.emplace(id, Member{});
}

std::optional<Round::Member> Round::remove(ConnectionId id) {
  const auto found = members_.find(id);
  if (found == members_.end()) return std::nullopt;
  const Member gone = found->second;
  members_.erase(found);
  if (gone.reported) --reported_;
  if (gone.ready) --ready_;
  return gone;
}

bool Round::stop() { return !std::exchange(stopped_, true); }

void Round::report(ConnectionId id, std::string text, const MergeReports& merge) {
  if (std::exchange(members_.at(id).reported, true)) return;
  some_reported_ = true;
  ++reported_;
  --missing_reports_;
  report_bytes_ += text.size();
  reports_.push_back(std::move(text));
  if (report_bytes_ <= kMostBytesOfReports) return;
  reports_ = {merge(reports_)};
  report_bytes_ = reports_.front().size();
}

std::string Round::finish(const MergeReports& merge) {
  if (missing_reports_ > 0) reports_.emplace_back();
  stopped_ = goes_on_ = false;  // from here on a stop means that no round is to follow
  return merge(std::exchange(reports_, {}));
}

bool Round::make_ready(ConnectionId id) {
  if (std::exchange(members_.at(id).ready, true)) return false;
  ++ready_;
  goes_on_ = true;
  return true;
}

bool Round::acknowledge(ConnectionId id) {
  // A member that is lost before it could acknowledge keeps the round from being known to all: it may go on from the
  // one before.
  if (known_to_all_ || std::exchange(members_.at(id).knows, true) || ++acknowledged_ < began_with_) return false;
  known_to_all_ = true;
  return true;
}

}  // namespace lrun::launcher
