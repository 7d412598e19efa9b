// What a launcher says last while its job has no meeting: the others may be about to go on without it.
#include <algorithm>
#include <utility>

#include "rendezvous/job.h"

namespace lrun::launcher {
namespace {

constexpr Duration kShortestSearch(3000);

}  // namespace

/// No round is to follow, which they do not know yet. We look for their meeting, for as long as they need to begin one:
/// the lease of the last one, and a heartbeat in which its holder waits for us. Where we hold it already, leave()
/// waits.
void Job::keep_goodbye(const std::string& text) {
  goodbye_ = {.kind = LauncherMessage::Kind::kLeave, .round = round_, .text = text.substr(0, kMostReportBytes)};
  search_limit_.cancel();
  election_->only_look();
  if (election_->holds()) return;
  farewell_ = loop_.after(std::max(plan_.heartbeat, kShortestSearch) + plan_.heartbeat, [this] { end_farewell(); });
}

/// Who holds the meeting closes the connection when it has heard that.
void Job::say_goodbye() {
  link_->settle();
  link_->send(*goodbye_);
  goodbye_was_said_ = true;
  if (election_->holds()) goodbye_.reset();
}

void Job::link_broken_at_goodbye() { goodbye_was_said_ ? end_farewell() : election_->look_again(); }

void Job::end_farewell() {
  goodbye_.reset();
  farewell_.cancel();
  if (link_) link_->close();
  stop_looking();
  if (left_) leave_limit_ = loop_.after(Duration::zero(), [this] { std::exchange(left_, nullptr)(); });
}

}  // namespace lrun::launcher
