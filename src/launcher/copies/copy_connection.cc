// In: a socket to another node's copier. Out: its messages and files, and ours to it. Used by CopySender, CopyKeeper
// and CopyFetcher.
#include "copies/copy_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace lrun::launcher {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10U;
constexpr std::size_t kMostWaiting = std::size_t{4} << 20U;  // for the other end
constexpr int kMostTurns = 8;  // of reading or sending, before other connections have theirs

/// A host that loses its power sends nothing: the kernel asks it.
void notice_silence(int socket) {
  constexpr int kOn = 1;
  constexpr int kIdleSeconds = 10;
  constexpr int kEverySeconds = 5;
  constexpr int kTries = 3;
  constexpr unsigned kUnansweredMs = 25'000;
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &kOn, sizeof kOn);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &kIdleSeconds, sizeof kIdleSeconds);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &kEverySeconds, sizeof kEverySeconds);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &kTries, sizeof kTries);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnansweredMs, sizeof kUnansweredMs);
}

}  // namespace

CopyConnection::CopyConnection(EventLoop& loop, Fd socket, Handshake::Side side, const std::string& secret,
                               Events events)
    : loop_(loop), socket_(std::move(socket)), handshake_(side, secret, random_nonce()), events_(std::move(events)) {
  notice_silence(socket_.get());
  readable_ = loop_.on_readable(socket_.get(), [this] { read(); });
  out_.tail() += handshake_.take_output();
  flush();
}

void CopyConnection::send(const CopyMessage& message) {
  if (out_.size() > kMostWaiting) return break_off("it takes no answers");
  append_message(out_.tail(), message);
  flush();
}

void CopyConnection::send_files(FileStream files) {
  is_sending_ = true;
  files_.emplace(std::move(files));
  changed_.clear();
  flush();
}

void CopyConnection::read() {
  static thread_local std::string bytes(kReadBytes, '\0');
  for (int turn = 0; turn < kMostTurns && socket_ && readable_.armed(); ++turn) {
    const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (count == 0) return break_off("the connection was closed");
    if (count < 0) return break_off(std::generic_category().message(errno));
    take(std::string_view(bytes).substr(0, static_cast<std::size_t>(count)));
  }
}

void CopyConnection::take(std::string_view bytes) {
  std::string rest;
  if (!handshake_.done()) {
    handshake_.feed(bytes);
    out_.tail() += handshake_.take_output();
    if (!handshake_.refusal().empty()) return break_off(handshake_.refusal());
    flush();
    if (!handshake_.done()) return;
    rest = handshake_.take_rest();
    bytes = rest;
    events_.ready();
  }
  while (readable_.armed()) {
    const std::optional<CopyItem> item = decoder_.next(bytes);
    if (!item) break;
    events_.received(*item);
  }
  if (!decoder_.refusal().empty()) break_off("it sent " + decoder_.refusal());
}

void CopyConnection::flush() {
  if (!readable_.armed()) return;  // it is broken
  for (int turn = 0; turn < kMostTurns; ++turn) {
    if (!out_.send_to(socket_.get())) return break_off("the connection was lost");
    if (!out_.empty() || !files_) break;
    if (files_->append_next(out_.tail())) continue;
    changed_ = files_->changed();
    files_.reset();
    report_ = loop_.after(Duration::zero(), [this] {
      is_sending_ = false;
      const auto sent = events_.sent;  // it may destroy this
      sent();
    });
  }
  if (out_.empty() && !files_) {
    writable_.cancel();
  } else if (!writable_.armed()) {
    writable_ = loop_.on_writable(socket_.get(), [this] { flush(); });
  }
}

void CopyConnection::break_off(const std::string& why) {
  readable_.cancel();
  writable_.cancel();
  files_.reset();
  // It may destroy this.
  report_ = loop_.after(Duration::zero(), [broken = events_.broken, why] { broken(why); });
}

}  // namespace lrun::launcher
