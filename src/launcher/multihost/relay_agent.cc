#include "multihost/relay_agent.h"

#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "multihost/head_connection.h"
#include "process/spawn.h"
#include "remote/host_relay.h"

namespace lrun::launcher {
namespace {

constexpr Duration kRelayEndLimit(3000);  // the launchers behind give their workers two seconds

/// Joins the head's connection with those of the hosts behind this one.
class RelayAgent {
 public:
  int run() {
    ::signal(SIGPIPE, SIG_IGN);
    head_.emplace(loop_, STDIN_FILENO, STDOUT_FILENO,
                  HeadConnection::Events{.frame = [this](const NodeFrame& frame) { relay_.handle(frame); },
                                         .lost = [this] { head_lost(); },
                                         .filled = [this](bool full) { relay_.pause(full); }});
    loop_.run();
    return 0;
  }

 private:
  /// To the hosts behind, the end of their input is the end of the head.
  void head_lost() {
    relay_.end_inputs();
    relay_.pause(false);
    limit_ = loop_.after(kRelayEndLimit, [this] { loop_.stop(); });
    if (relay_.empty()) loop_.stop();
  }

  void send(NodeFrame::Kind kind, const std::string& payload) {
    if (!head_->is_lost()) return head_->send(kind, payload);
    if (relay_.empty()) loop_.stop();
  }

  EventLoop loop_;
  // With the disposition of SIGPIPE that this process was started with.
  HostRelay relay_{loop_, SpawnDefaults::of_this_process(),
                   [this](NodeFrame::Kind kind, const std::string& payload) { send(kind, payload); }};
  std::optional<HeadConnection> head_;
  EventLoop::Timer limit_;
};

}  // namespace

int serve_relay() { return RelayAgent().run(); }

}  // namespace lrun::launcher
