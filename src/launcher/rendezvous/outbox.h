#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rendezvous/membership.h"
#include "rendezvous/message.h"

namespace lrun::launcher {

/// One message to some launchers.
struct OutgoingMessage {
  std::vector<ConnectionId> to;
  LauncherMessage message;
  std::vector<Member> selves = {};  ///< of kBegin: Membership::self of each of `to`; else empty
  bool last = false;                ///< the connection is closed behind it

  bool operator==(const OutgoingMessage&) const = default;
};

/// Collects the messages of a Coordinator for launchers, in order, and its warnings for people. A value.
class Outbox {
 public:
  void send(ConnectionId to, LauncherMessage message, bool last = false) {
    send(std::vector<ConnectionId>{to}, std::move(message), last);
  }
  /// Sends nothing where `to` is empty.
  void send(std::vector<ConnectionId> to, LauncherMessage message, bool last = false) {
    if (!to.empty()) messages_.push_back({.to = std::move(to), .message = std::move(message), .last = last});
  }
  /// kBegin, with the place of each member.
  void begin(std::vector<ConnectionId> to, LauncherMessage message, std::vector<Member> selves) {
    messages_.push_back({.to = std::move(to), .message = std::move(message), .selves = std::move(selves)});
  }
  /// One line for people where the rendezvous runs.
  void warn(std::string line) { warnings_.push_back(std::move(line)); }

  /// Since the last call.
  std::vector<OutgoingMessage> take_messages() { return std::exchange(messages_, {}); }
  std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }

 private:
  std::vector<OutgoingMessage> messages_;
  std::vector<std::string> warnings_;
};

}  // namespace lrun::launcher
