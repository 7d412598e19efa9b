#include "store/send_buffer.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace lrun::launcher {
namespace {

/// A connection keeps at most this once everything is sent: one large answer must not stay allocated for ever.
constexpr std::size_t kKeptBytes = 4096;

}  // namespace

bool SendBuffer::send_to(int fd) {
  return give_all(
      [fd](const char* bytes, std::size_t size) { return ::send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT); });
}

bool SendBuffer::send_to(int fd, std::string_view more) {
  if (!send_to(fd)) return false;
  while (empty() && !more.empty()) {
    const ssize_t count = ::send(fd, more.data(), more.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return false;
    if (count < 0) break;
    more.remove_prefix(static_cast<std::size_t>(count));
  }
  bytes_.append(more);
  return true;
}

bool SendBuffer::write_to(int fd) {
  return give_all([fd](const char* bytes, std::size_t size) { return ::write(fd, bytes, size); });
}

template <typename Give>
bool SendBuffer::give_all(const Give& give) {
  while (!empty()) {
    const ssize_t count = give(bytes_.data() + sent_, size());
    if (count < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
    sent_ += static_cast<std::size_t>(count);
    drop_sent();
  }
  return true;
}

void SendBuffer::drop_sent() {
  if (empty()) {
    bytes_.clear();
    sent_ = 0;
    if (bytes_.capacity() > kKeptBytes) bytes_.shrink_to_fit();
  } else if (sent_ > bytes_.size() / 2) {  // at most one byte is moved for each that was sent
    bytes_.erase(0, sent_);
    sent_ = 0;
  }
}

}  // namespace lrun::launcher
