#pragma once

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/job_state.h"
#include "rendezvous/message.h"

namespace lrun::launcher {

/// Keeps the messages of all launchers until any launcher can be admitted (nodes that wait are in Roster): the leader's
/// own launcher has to join first, and it has to be known whether a job goes on whose state was left behind. Pure; a
/// value.
class EarlyMessages {
 public:
  using Message = std::pair<ConnectionId, LauncherMessage>;

  /// \param own_token  of the leader's own launcher, so that the others have to fit to it; empty: none is awaited
  explicit EarlyMessages(std::string own_token) : own_(own_token), awaited_(std::move(own_token)) {}

  /// The leader's own launcher joins once more, before all others.
  void await_own() { awaited_ = own_; }
  /// Another leader left this behind: all wait until a launcher that took part in the job joins.
  void await_member_of(JobState state) {
    left_behind_ = std::move(state);
    member_came_ = false;
  }
  /// No such launcher has come: a new job has the old one's name.
  void forget_state() { left_behind_.reset(); }
  [[nodiscard]] bool awaits_member() const { return left_behind_.has_value(); }

  /// A message of a launcher that was not admitted: kJoin, kReady or kLeave right behind it, or kInvite.
  void receive(ConnectionId from, const LauncherMessage& message);
  /// A connection ended. Its messages count only where the launcher meant to leave.
  void left(ConnectionId who);

  /// The state that was left behind, once a launcher that took part in the job has come.
  std::optional<JobState> take_state();
  /// The messages so far, in the order in which they count. Empty while a launcher is awaited.
  std::vector<Message> take_messages();

  [[nodiscard]] bool is_own(const JoinRecord& record) const { return record.token == own_; }

 private:
  std::string own_;
  std::string awaited_;
  std::optional<JobState> left_behind_;
  bool member_came_ = false;  ///< of the job that left it
  std::deque<Message> messages_;
  std::optional<Message> invitation_;  ///< the latest counts
};

}  // namespace lrun::launcher
