#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "rendezvous/join_record.h"
#include "rendezvous/message.h"

namespace lrun::launcher {

/// Where the launchers of a job meet.
struct RendezvousAddress {
  std::string address;  ///< numeric; a loopback one is on the host of the launcher that names it
  int port = 0;

  bool operator==(const RendezvousAddress&) const = default;
};

/// Where launchers are sent that come to a rendezvous which is not, or no longer, that of their job. Pure; a value.
class Redirection {
 public:
  /// The job meets elsewhere. \param job  a record of it, by which launchers that come later are judged; may be empty
  void redirect_to(RendezvousAddress target, std::optional<JoinRecord> job) {
    if (job) job_ = std::move(job);
    target_ = std::move(target);
  }
  /// It meets here after all.
  void cancel() {
    target_.reset();
    job_.reset();
  }
  /// Empty: here.
  [[nodiscard]] const std::optional<RendezvousAddress>& target() const { return target_; }
  [[nodiscard]] const std::optional<JoinRecord>& job() const { return job_; }
  /// For launchers that are redirected.
  [[nodiscard]] LauncherMessage message() const {
    return {.kind = LauncherMessage::Kind::kRedirect, .port = target_->port, .address = target_->address};
  }

  /// No round can begin here: newcomers, which were redirected here, have to go back.
  void send_back(std::string why) { dead_end_ = std::move(why); }
  [[nodiscard]] bool sends_back() const { return !dead_end_.empty(); }
  [[nodiscard]] LauncherMessage back_message() const {
    return {.kind = LauncherMessage::Kind::kNoRendezvous, .text = dead_end_};
  }

  /// A launcher was in a round that began here. If it invites us to a rendezvous of its own, it has given us up, and
  /// we must not follow it.
  void note_member(const std::string& token) { members_.insert(token); }
  [[nodiscard]] bool was_member(const std::string& token) const { return members_.count(token) != 0; }

 private:
  std::optional<RendezvousAddress> target_;
  std::optional<JoinRecord> job_;
  std::string dead_end_;
  std::unordered_set<std::string> members_;
};

}  // namespace lrun::launcher
