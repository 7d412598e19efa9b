// In: the order of the head, and its go. Out: a child that runs the launcher, its output as frames, and its end. Called
// by the host agent.
#include "multihost/hosted_launcher.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>
#include <vector>

#include "process/descendants.h"
#include "process/fork_child.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kOutputBytes = std::size_t{32} * 1024;
constexpr Duration kQuietLimit(1000);  // then streams that others hold open are closed
constexpr Duration kLookWithoutPidfd(20);
constexpr Duration kLauncherEndLimit(5000);  // of all that the launcher has left

/// Messages go one way, questions the other.
std::pair<Fd, Fd> socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  return {Fd(ends[0]), Fd(ends[1])};
}

}  // namespace

void HostedLauncher::start(const NodeOrder& order, const NodeGo& go, const Fd& listener, const HeadSignals& signals,
                           bool ignores_broken_pipes) {
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  auto [ours, messages] = socket_pair();
  std::vector<int> kept{messages.get()};
  if (listener) kept.push_back(listener.get());
  std::sort(kept.begin(), kept.end());
  const NodeStart start{go, listener.get(), messages.get(), &signals};
  SpawnResult result = fork_child({.function =
                                       [&] {
                                         if (!ignores_broken_pipes) ::signal(SIGPIPE, SIG_DFL);
                                         return run_host_order(order, start);
                                       },
                                   .standard_input = null.get(),
                                   .standard_output = out.write.get(),
                                   .standard_error = err.write.get(),
                                   .descriptors = kept});
  if (!result.ok()) throw std::system_error(result.error_number, std::generic_category(), "no process");
  child_ = std::move(result.child);
  watch(out_, std::move(out.read));
  watch(err_, std::move(err.read));
  watch(messages_, std::move(ours));
  watch_child();
}

void HostedLauncher::watch(Stream& stream, Fd fd) {
  set_nonblocking(fd.get());
  stream.fd = std::move(fd);
  stream.readable = loop_.on_readable(stream.fd.get(), [this, &stream] { read_some(stream); });
}

void HostedLauncher::read_some(Stream& stream) {
  char bytes[kOutputBytes];
  const ssize_t count = ::read(stream.fd.get(), bytes, sizeof bytes);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) {
    if (status_) limit_reading();
    return pass_on(stream, {bytes, static_cast<std::size_t>(count)});
  }
  close(stream);
  finish_when_all_is_read();
}

void HostedLauncher::pass_on(const Stream& stream, std::string_view bytes) {
  if (&stream != &messages_) return events_.frame(stream.kind, bytes);
  message_frames_.feed(bytes);
  while (const std::optional<NodeFrame> frame = message_frames_.next()) events_.frame(frame->kind, frame->payload);
}

void HostedLauncher::close(Stream& stream) {
  stream.readable.cancel();
  stream.fd.reset();
}

void HostedLauncher::watch_child() {
  if (child_->poll_fd() >= 0) {
    exit_ = loop_.on_readable(child_->poll_fd(), [this] { look_at_child(); });
  } else {
    look_ = loop_.after(kLookWithoutPidfd, [this] { look_at_child(); });
  }
}

void HostedLauncher::look_at_child() {
  status_ = child_->try_wait();
  if (!status_) return child_->poll_fd() >= 0 ? void() : watch_child();
  exit_.cancel();
  (void)end_all_descendants(kLauncherEndLimit);
  limit_reading();
  finish_when_all_is_read();
}

/// A process that outlives all others may hold the streams open. Output that waits because the head takes no more is
/// not lost.
void HostedLauncher::limit_reading() {
  read_limit_ = loop_.after(kQuietLimit, [this] {
    if (held_back_ && !may_drop_) return limit_reading();
    for (Stream* const stream : {&out_, &err_, &messages_}) close(*stream);
    finish_when_all_is_read();
  });
}

void HostedLauncher::finish_when_all_is_read() {
  if (!status_ || !events_.ended || out_.fd || err_.fd || messages_.fd) return;
  read_limit_.cancel();
  std::exchange(events_.ended, nullptr)(*status_);
}

void HostedLauncher::signal(int signal_number) {
  if (is_running()) child_->signal(signal_number);
}

void HostedLauncher::ask(const std::string& question) {
  if (!is_running() || !messages_.fd) return;
  const std::string frame = encode(NodeFrame::Kind::kAsk, question);
  (void)::send(messages_.fd.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void HostedLauncher::hold_back(bool wait) {
  if (std::exchange(held_back_, wait) == wait) return;
  for (Stream* const stream : {&out_, &err_}) {
    if (wait) {
      stream->readable.cancel();
    } else if (stream->fd) {
      stream->readable = loop_.on_readable(stream->fd.get(), [this, stream] { read_some(*stream); });
    }
  }
  if (!wait && status_ && events_.ended) limit_reading();
}

void HostedLauncher::close_out() {
  close(out_);
  finish_when_all_is_read();
}

}  // namespace lrun::launcher
