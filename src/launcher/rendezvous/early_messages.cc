// In: messages of launchers that cannot be admitted yet. Out: the same, in the order in which they count. Coordinator
// owns them.
#include "rendezvous/early_messages.h"

#include <algorithm>
#include <iterator>

namespace lrun::launcher {
namespace {

using Kind = LauncherMessage::Kind;

/// A member that never heard of its round joins as a newcomer: it is known by its token.
bool took_part(const LauncherMessage& join, const JobState& state) {
  return join.resumes || join.was_spare ||
         std::find(state.members.begin(), state.members.end(), join.join->token) != state.members.end();
}

}  // namespace

void EarlyMessages::receive(ConnectionId from, const LauncherMessage& message) {
  if (message.kind == Kind::kInvite) {
    invitation_.emplace(from, message);
    return;
  }
  const auto before =
      std::count_if(messages_.begin(), messages_.end(), [from](const Message& each) { return each.first == from; });
  if (message.kind != Kind::kJoin) {
    // kReady and kLeave may come right behind kJoin, once each. More messages come from no launcher of ours.
    const bool is_last = message.kind == Kind::kLeave;
    if (before == 1 || (is_last && before == 2)) messages_.emplace_back(from, message);
    return;
  }
  if (before != 0) return;
  // The leader's own launcher is admitted first, so that the others have to fit to it.
  const bool is_awaited = message.join->token == awaited_;
  if (is_awaited) awaited_.clear();
  member_came_ = member_came_ || (left_behind_ && took_part(message, *left_behind_));
  messages_.emplace(is_awaited ? messages_.begin() : messages_.end(), from, message);
}

void EarlyMessages::left(ConnectionId who) {
  if (invitation_ && invitation_->first == who) invitation_.reset();
  const bool has_left = std::any_of(messages_.begin(), messages_.end(), [who](const Message& each) {
    return each.first == who && each.second.kind == Kind::kLeave;
  });
  if (!has_left) std::erase_if(messages_, [who](const Message& each) { return each.first == who; });
}

std::optional<JobState> EarlyMessages::take_state() {
  if (!left_behind_ || !member_came_) return std::nullopt;
  return std::exchange(left_behind_, std::nullopt);
}

std::vector<EarlyMessages::Message> EarlyMessages::take_messages() {
  if (!awaited_.empty() || left_behind_) return {};
  std::vector<Message> messages(std::make_move_iterator(messages_.begin()), std::make_move_iterator(messages_.end()));
  messages_.clear();
  if (invitation_) messages.push_back(*std::exchange(invitation_, std::nullopt));
  return messages;
}

}  // namespace lrun::launcher
