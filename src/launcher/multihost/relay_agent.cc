#include "multihost/relay_agent.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/event_loop.h"
#include "base/fd.h"
#include "process/spawn.h"
#include "remote/frames.h"
#include "remote/host_relay.h"
#include "store/send_buffer.h"

namespace lrun::launcher {
namespace {

using Kind = NodeFrame::Kind;

constexpr std::size_t kRelayReadBytes = std::size_t{64} * 1024;
constexpr std::size_t kMostUnsentByRelay = std::size_t{1} << 20U;  // then the hosts' output waits
constexpr Duration kToEnd(3000);                                   // a launcher gives its own workers two seconds

class RelayServer {
 public:
  RelayServer()
      : relay_(loop_, SpawnDefaults::of_this_process(),
               [this](Kind kind, const std::string& payload) { tell(kind, payload); }) {}

  int run() {
    ::signal(SIGPIPE, SIG_IGN);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) set_nonblocking(fd);
    out_.tail() = kNodeHandshake;
    input_ = loop_.on_readable(STDIN_FILENO, [this] { read_input(); });
    count_silence();
    flush();
    loop_.run();
    return 0;
  }

 private:
  void read_input() {
    char bytes[kRelayReadBytes];
    const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return head_is_gone();
    frames_.feed({bytes, static_cast<std::size_t>(count)});
    while (const std::optional<NodeFrame> frame = frames_.next()) {
      count_silence();
      if (frame->kind == Kind::kPaused) silence_.cancel();
      relay_.handle(*frame);
    }
    if (frames_.broken()) head_is_gone();
  }

  void count_silence() {
    silence_ = loop_.after(kMostSilence, [this] { head_is_gone(); });
  }

  void head_is_gone() {
    input_.cancel();
    silence_.cancel();
    if (std::exchange(head_gone_, true)) return;
    relay_.end_inputs();
    relay_.pause(false);
    limit_ = loop_.after(kToEnd, [this] { loop_.stop(); });
    if (relay_.empty()) loop_.stop();
  }

  void tell(Kind kind, const std::string& payload) {
    if (!head_gone_) {
      out_.tail() += encode(kind, payload);
      flush();
    } else if (relay_.empty()) {
      loop_.stop();
    }
  }

  void flush() {
    if (!out_.write_to(STDOUT_FILENO)) out_ = SendBuffer();  // nobody reads it: its end comes through our input, too
    hold_back(out_.size() > kMostUnsentByRelay);
    if (out_.empty()) {
      writable_.cancel();
    } else if (!writable_.armed()) {
      writable_ = loop_.on_writable(STDOUT_FILENO, [this] { flush(); });
    }
  }

  void hold_back(bool wait) {
    if (std::exchange(held_back_, wait) != wait) relay_.pause(wait);
  }

  EventLoop loop_;
  HostRelay relay_;
  NodeFrameReader frames_;
  SendBuffer out_;
  bool held_back_ = false;
  bool head_gone_ = false;
  EventLoop::Watch input_;
  EventLoop::Watch writable_;
  EventLoop::Timer silence_;
  EventLoop::Timer limit_;
};

}  // namespace

int serve_relay() { return RelayServer().run(); }

}  // namespace lrun::launcher
