#include "multihost/head_connection.h"

#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "base/fd.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kReadBytes = std::size_t{64} * 1024;
constexpr std::size_t kMostUnsent = std::size_t{1} << 20U;

}  // namespace

HeadConnection::HeadConnection(EventLoop& loop, int in, int out, Events events)
    : loop_(loop), in_(in), out_(out), events_(std::move(events)) {
  for (const int fd : {in_, out_}) set_nonblocking(fd);
  unsent_.tail() = kNodeHandshake;
  readable_ = loop_.on_readable(in_, [this] { read_some(); });
  count_silence();
  flush();
}

void HeadConnection::read_some() {
  char bytes[kReadBytes];
  const ssize_t count = ::read(in_, bytes, sizeof bytes);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return lose();
  frames_.feed({bytes, static_cast<std::size_t>(count)});
  while (const std::optional<NodeFrame> frame = frames_.next()) {
    events_.frame(*frame);
    count_silence();
    // A head announces that it is about to be suspended: its silence means nothing until it goes on.
    if (frame->kind == NodeFrame::Kind::kPaused) silence_.cancel();
  }
  if (frames_.broken()) lose();
}

void HeadConnection::count_silence() {
  silence_.cancel();
  if (is_lost_ || most_silence_ <= Duration::zero()) return;
  silence_ = loop_.after(most_silence_, [this] { lose(); });
}

void HeadConnection::lose() {
  readable_.cancel();
  silence_.cancel();
  if (!std::exchange(is_lost_, true)) events_.lost();
}

void HeadConnection::send(NodeFrame::Kind kind, std::string_view payload) {
  unsent_.tail() += encode(kind, payload);
  flush();
}

void HeadConnection::flush() {
  if (!unsent_.write_to(out_)) unsent_ = SendBuffer();  // nobody reads it; the end of the input will say so, too
  const bool is_full = unsent_.size() > kMostUnsent;
  if (std::exchange(is_full_, is_full) != is_full) events_.filled(is_full);
  if (!unsent_.empty()) {
    if (!writable_.armed()) writable_ = loop_.on_writable(out_, [this] { flush(); });
    return;
  }
  writable_.cancel();
  events_.flushed();
}

}  // namespace lrun::launcher
