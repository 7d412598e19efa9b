#include "multihost/host_agent.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <system_error>
#include <utility>

#include "base/event_loop.h"
#include "base/fd.h"
#include "base/split.h"
#include "base/whole_number.h"
#include "cluster/machine_identity.h"
#include "lrun_version.h"
#include "multihost/run_host_order.h"
#include "process/descendants.h"
#include "process/exit_codes.h"
#include "process/fork_child.h"
#include "process/pidfd.h"
#include "remote/frames.h"
#include "store/listening_socket.h"
#include "store/send_buffer.h"

namespace lrun::launcher {
namespace {

using Kind = NodeFrame::Kind;

constexpr std::size_t kReadBytes = std::size_t{32} * 1024;
constexpr std::size_t kMostUnsent = std::size_t{1} << 20U;  // then the workers' output waits
constexpr Duration kToObey(2000);
constexpr Duration kToDrain(1000);  // how long nothing is read before what others hold open is closed
constexpr Duration kLookWithoutPidfd(20);
constexpr Duration kCleanUpLimit(5000);

/// What ssh says about its connection: 'client port server port'.
NodeReady ready_with(int port) {
  const char* const text = std::getenv("SSH_CONNECTION");
  std::string_view rest = text == nullptr ? "" : text;
  NodeReady ready{port, {}, std::string(cut(rest, ' ')), machine_identity()};
  (void)cut(rest, ' ');
  ready.own_address = cut(rest, ' ');
  return ready;
}

class NodeServer {
 public:
  int run() {
    pipe_signal_ignored_ = ::signal(SIGPIPE, SIG_IGN) == SIG_IGN;
    block_child_signal();
    become_subreaper();
    set_nonblocking_for_us();
    out_.tail() = kNodeHandshake;
    input_ = loop_.on_readable(STDIN_FILENO, [this] { read_input(); });
    silence_ = loop_.after(kMostSilence, [this] { head_is_gone(); });
    flush();
    loop_.run();
    (void)end_all_descendants(kCleanUpLimit);
    return code_;
  }

 private:
  /// One stream of the child.
  struct Stream {
    Fd fd;
    EventLoop::Watch readable;
  };

  static void close(Stream& stream) {
    stream.readable.cancel();
    stream.fd.reset();
  }

  static void block_child_signal() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
  }

  /// sshd's pipes are ours alone, and so are those of who started us on its own host.
  static void set_nonblocking_for_us() {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) set_nonblocking(fd);
  }

  void read_input() {
    char bytes[kReadBytes];
    const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return head_is_gone();
    frames_.feed({bytes, static_cast<std::size_t>(count)});
    while (std::optional<NodeFrame> frame = frames_.next()) {
      take(*frame);
      count_silence(*frame);
    }
    if (frames_.broken()) head_is_gone();
  }

  void take(const NodeFrame& frame) {
    switch (frame.kind) {
      case Kind::kOrder:
        return prepare(frame.payload);
      case Kind::kGo:
        return start(frame.payload);
      case Kind::kSignal:
        return pass_on(whole_number<int>(frame.payload).value_or(0));
      case Kind::kCloseOut:
        return close_out();
      default:
        return;
    }
  }

  /// From its last frame on.
  void count_silence(const NodeFrame& last) {
    if (order_) most_silence_ = Duration(order_->most_silence);
    silence_.cancel();
    if (last.kind == Kind::kPaused || most_silence_ <= Duration(0)) return;
    silence_ = loop_.after(most_silence_, [this] { head_is_gone(); });
  }

  void prepare(const std::string& payload) {
    const std::string version = version_of_order(payload);
    if (!version.empty() && version != LRUN_VERSION) {
      return refuse(fmt::format("it is lrun {} there, and {} here", LRUN_VERSION, version));
    }
    order_ = decode_order(payload);
    if (!order_) return refuse("what it was told to do cannot be read");
    if (::chdir(order_->folder.c_str()) != 0 && order_->needs_folder) {
      return refuse(fmt::format("the directory '{}': {}", order_->folder, std::strerror(errno)));
    }
    try {
      int port = 0;
      if (order_->node_rank == 0 && order_->nodes.size() > 1) {
        listener_ = open_listening_socket(StoreReach::kNetwork, static_cast<std::uint16_t>(order_->port));
        port = port_of_socket(listener_.get());
      }
      send(Kind::kAnswer, encode(ready_with(port)));
    } catch (const std::system_error& error) {
      refuse(error.what());
    }
  }

  void refuse(const std::string& why) {
    order_.reset();
    send(Kind::kRefusal, why);
  }

  void start(std::string_view payload) {
    const std::optional<NodeGo> go = decode_go(payload);
    if (!order_ || child_ || !go) return;
    try {
      start_child(*go);
    } catch (const std::system_error& error) {
      fail_to_start(error.what());
    }
  }

  /// The others began at the same time: the head is told the end, too.
  void fail_to_start(const std::string& why) {
    refuse(why);
    ended_ = true;
    send(Kind::kEnded, fmt::format("0 {}", kExitRefused));
  }

  /// \throws std::system_error
  void start_child(const NodeGo& go) {
    const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    Pipe out = make_pipe();
    Pipe err = make_pipe();
    Pipe words = make_pipe();
    std::vector<int> kept{words.write.get()};
    if (listener_) kept.push_back(listener_.get());
    std::sort(kept.begin(), kept.end());
    const int words_fd = words.write.get();
    SpawnResult result =
        fork_child({.function =
                        [&] {
                          if (!pipe_signal_ignored_) ::signal(SIGPIPE, SIG_DFL);
                          return run_host_order(*order_, {go, listener_.get(), words_fd, &head_signals_});
                        },
                    .standard_input = nothing.get(),
                    .standard_output = out.write.get(),
                    .standard_error = err.write.get(),
                    .descriptors = kept});
    if (!result.ok()) throw std::system_error(result.error_number, std::generic_category(), "no process");
    child_ = std::move(result.child);
    listener_.reset();
    open(out_stream_, std::move(out.read), [this] { relay(out_stream_, Kind::kOut); });
    open(err_stream_, std::move(err.read), [this] { relay(err_stream_, Kind::kErr); });
    open(words_stream_, std::move(words.read), [this] { relay_words(); });
    watch_child();
  }

  void open(Stream& stream, Fd fd, std::function<void()> readable) {
    set_nonblocking(fd.get());
    stream.fd = std::move(fd);
    stream.readable = loop_.on_readable(stream.fd.get(), std::move(readable));
  }

  void watch_child() {
    if (child_->poll_fd() >= 0) {
      exit_ = loop_.on_readable(child_->poll_fd(), [this] { look_at_child(); });
    } else {
      look_ = loop_.after(kLookWithoutPidfd, [this] { look_at_child(); });
    }
  }

  void look_at_child() {
    status_ = child_->try_wait();
    if (!status_) return child_->poll_fd() >= 0 ? void() : watch_child();
    exit_.cancel();
    (void)end_all_descendants(kCleanUpLimit);
    drain();
    finish_when_all_is_read();
  }

  /// Who outlives all the rest may hold the streams open. What waits because the head takes no more is not lost.
  void drain() {
    drain_ = loop_.after(kToDrain, [this] {
      if (held_back_ && !head_gone_) return drain();
      for (Stream* const stream : {&out_stream_, &err_stream_, &words_stream_}) close(*stream);
      finish_when_all_is_read();
    });
  }

  /// \return how many bytes; 0: the stream is at its end, negative: there are none now.
  ssize_t read_from(Stream& stream, char* bytes) {
    const ssize_t count = ::read(stream.fd.get(), bytes, kReadBytes);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return -1;
    if (count > 0 && status_) drain();
    if (count > 0) return count;
    close(stream);
    finish_when_all_is_read();
    return 0;
  }

  void relay(Stream& stream, Kind kind) {
    char bytes[kReadBytes];
    const ssize_t count = read_from(stream, bytes);
    if (count > 0) send(kind, {bytes, static_cast<std::size_t>(count)});
  }

  /// The child writes them as frames.
  void relay_words() {
    char bytes[kReadBytes];
    const ssize_t count = read_from(words_stream_, bytes);
    if (count <= 0) return;
    words_.feed({bytes, static_cast<std::size_t>(count)});
    while (const std::optional<NodeFrame> frame = words_.next()) send(frame->kind, frame->payload);
  }

  void close_out() {
    close(out_stream_);
    finish_when_all_is_read();
  }

  void finish_when_all_is_read() {
    if (!status_ || ended_ || out_stream_.fd || err_stream_.fd || words_stream_.fd) return;
    ended_ = true;
    drain_.cancel();
    const bool by_signal = status_->kind == ExitStatus::Kind::kSignaled;
    code_ = status_->shell_code();
    send(Kind::kEnded, fmt::format("{} {}", by_signal ? status_->value : 0, code_));
    if (head_gone_ || out_.empty()) loop_.stop();
  }

  void pass_on(int signal_number) {
    if (!child_ || status_ || signal_number <= 0) return;
    head_signals_.note(signal_number);
    child_->signal(signal_number);
  }

  void head_is_gone() {
    input_.cancel();
    silence_.cancel();
    if (std::exchange(head_gone_, true)) return;
    if (!child_ || ended_) return loop_.stop();
    head_signals_.note_loss();
    child_->signal(SIGHUP);
    kill_ = loop_.after(kToObey, [this] {
      if (child_ && !status_) child_->signal(SIGKILL);  // what it guards ends with it
    });
  }

  void send(Kind kind, std::string_view payload) {
    out_.tail() += encode(kind, payload);
    flush();
  }

  void flush() {
    if (!out_.write_to(STDOUT_FILENO)) out_ = SendBuffer();  // nobody reads it: its end comes through our input, too
    hold_back(out_.size() > kMostUnsent);
    if (!out_.empty()) {
      if (!writable_.armed()) writable_ = loop_.on_writable(STDOUT_FILENO, [this] { flush(); });
      return;
    }
    writable_.cancel();
    if (ended_) loop_.stop();
  }

  /// The workers' output waits, for as long as nobody takes what is here.
  void hold_back(bool wait) {
    if (std::exchange(held_back_, wait) == wait) return;
    const auto set = [&](Stream& stream, Kind kind) {
      if (wait) {
        stream.readable.cancel();
      } else if (stream.fd) {
        stream.readable = loop_.on_readable(stream.fd.get(), [this, &stream, kind] { relay(stream, kind); });
      }
    };
    set(out_stream_, Kind::kOut);
    set(err_stream_, Kind::kErr);
    if (!wait && status_ && !ended_) drain();
  }

  EventLoop loop_;
  NodeFrameReader frames_;
  NodeFrameReader words_;
  std::optional<NodeOrder> order_;
  Duration most_silence_ = kMostSilence;
  Fd listener_;
  HeadSignals head_signals_;
  std::optional<PidFd> child_;
  std::optional<ExitStatus> status_;
  int code_ = kExitRefused;
  SendBuffer out_;
  bool pipe_signal_ignored_ = false;  ///< by who started us: it is then for the workers, too
  bool held_back_ = false;
  bool head_gone_ = false;
  bool ended_ = false;  ///< the last frame was given
  Stream out_stream_;
  Stream err_stream_;
  Stream words_stream_;
  EventLoop::Watch input_;
  EventLoop::Watch writable_;
  EventLoop::Watch exit_;
  EventLoop::Timer silence_;
  EventLoop::Timer look_;
  EventLoop::Timer drain_;
  EventLoop::Timer kill_;
};

}  // namespace

int serve_node() { return NodeServer().run(); }

}  // namespace lrun::launcher
