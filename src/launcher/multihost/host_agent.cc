// In: frames of the head on standard input. Out: the launcher of this host in a child process, and its output and end
// as frames on standard output. main() calls serve_node().
#include "multihost/host_agent.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <system_error>

#include "base/event_loop.h"
#include "base/fd.h"
#include "base/split.h"
#include "base/whole_number.h"
#include "cluster/machine_identity.h"
#include "lrun_version.h"
#include "multihost/head_connection.h"
#include "multihost/hosted_launcher.h"
#include "process/descendants.h"
#include "process/exit_codes.h"
#include "process/signal_set.h"
#include "store/listening_socket.h"

namespace lrun::launcher {
namespace {

using Kind = NodeFrame::Kind;

constexpr Duration kObeyLimit(2000);  // of the launcher, once the head is gone
constexpr Duration kEndLimit(5000);

/// SSH_CONNECTION, as ssh sets it: 'client port server port'.
NodeReady ready_with(int port) {
  const char* const text = std::getenv("SSH_CONNECTION");
  std::string_view rest = text == nullptr ? "" : text;
  NodeReady ready{port, {}, std::string(cut(rest, ' ')), machine_identity()};
  (void)cut(rest, ' ');
  ready.own_address = cut(rest, ' ');
  return ready;
}

/// Answers the head: order, go and signals come from it.
class HostAgent {
 public:
  int run() {
    loop_.run();
    (void)end_all_descendants(kEndLimit);
    return code_;
  }

 private:
  void received(const NodeFrame& frame) {
    switch (frame.kind) {
      case Kind::kOrder:
        return prepare(frame.payload);
      case Kind::kGo:
        return start(frame.payload);
      case Kind::kSignal:
        return pass_on(whole_number<int>(frame.payload).value_or(0));
      case Kind::kAsk:
        return launcher_.ask(frame.payload);
      case Kind::kCloseOut:
        return launcher_.close_out();
      default:
        return;
    }
  }

  void prepare(const std::string& payload) {
    const std::string version = version_of_order(payload);
    if (!version.empty() && version != LRUN_VERSION) {
      return refuse(fmt::format("it is lrun {} there, and {} here", LRUN_VERSION, version));
    }
    order_ = decode_order(payload);
    if (!order_) return refuse("its order cannot be read");
    head_.set_most_silence(Duration(order_->most_silence));
    if (::chdir(order_->folder.c_str()) != 0 && order_->needs_folder) {
      return refuse(fmt::format("the directory '{}': {}", order_->folder, std::strerror(errno)));
    }
    try {
      head_.send(Kind::kAnswer, encode(ready_with(listen())));
    } catch (const std::system_error& error) {
      refuse(error.what());
    }
  }

  /// The port on which the first node listens before it answers: with the inherited socket no port can be taken in
  /// between. \return 0: this node is another one, or alone.
  int listen() {
    if (order_->node_rank != 0 || order_->nodes.size() == 1) return 0;
    listener_ = open_listening_socket(StoreReach::kNetwork, static_cast<std::uint16_t>(order_->port));
    return port_of_socket(listener_.get());
  }

  void refuse(const std::string& why) {
    order_.reset();
    head_.send(Kind::kRefusal, why);
  }

  void start(std::string_view payload) {
    const std::optional<NodeGo> go = decode_go(payload);
    if (!order_ || launcher_.started() || !go) return;
    try {
      launcher_.start(*order_, *go, listener_, head_signals_, ignores_broken_pipes_);
      listener_.reset();
    } catch (const std::system_error& error) {
      refuse(error.what());
      ended({ExitStatus::Kind::kExited, kExitRefused});  // the others have begun, so the head needs an end, too
    }
  }

  void pass_on(int signal_number) {
    if (!launcher_.is_running() || signal_number <= 0) return;
    head_signals_.note(signal_number);
    launcher_.signal(signal_number);
  }

  void ended(const ExitStatus& status) {
    has_ended_ = true;
    const bool by_signal = status.kind == ExitStatus::Kind::kSignaled;
    code_ = status.shell_code();
    head_.send(Kind::kEnded, fmt::format("{} {}", by_signal ? status.value : 0, code_));
    if (head_.is_lost()) loop_.stop();
  }

  void head_lost() {
    if (!launcher_.started() || has_ended_) return loop_.stop();
    launcher_.drop_held_back();
    head_signals_.note_loss();
    launcher_.signal(SIGHUP);
    kill_ = loop_.after(kObeyLimit, [this] { launcher_.signal(SIGKILL); });  // what it guards ends with it
  }

  void flushed() {
    if (has_ended_) loop_.stop();
  }

  bool ignores_broken_pipes_ = ::signal(SIGPIPE, SIG_IGN) == SIG_IGN;
  EventLoop loop_;
  HeadSignals head_signals_;
  std::optional<NodeOrder> order_;
  Fd listener_;
  int code_ = kExitRefused;
  bool has_ended_ = false;  ///< the last frame was given
  EventLoop::Timer kill_;
  HostedLauncher launcher_{loop_,
                           {.frame = [this](Kind kind, std::string_view payload) { head_.send(kind, payload); },
                            .ended = [this](const ExitStatus& status) { ended(status); }}};
  HeadConnection head_{loop_,
                       STDIN_FILENO,
                       STDOUT_FILENO,
                       {.frame = [this](const NodeFrame& frame) { received(frame); },
                        .lost = [this] { head_lost(); },
                        .filled = [this](bool full) { launcher_.hold_back(full); },
                        .flushed = [this] { flushed(); }}};
};

}  // namespace

int serve_node() {
  const sigset_t child_signal = signal_set({SIGCHLD});
  ::sigprocmask(SIG_BLOCK, &child_signal, nullptr);
  become_subreaper();
  return HostAgent().run();
}

}  // namespace lrun::launcher
