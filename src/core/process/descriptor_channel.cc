#include "process/descriptor_channel.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace lrun::inline core {
namespace {

/// Room for some descriptors beside a message of one byte.
struct Descriptors {
  char byte = 0;
  iovec bytes{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostSentDescriptors)] = {};
  msghdr message{};

  explicit Descriptors(std::size_t count) {
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    if (count == 0) return;
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
  }
};

}  // namespace

bool send_descriptors(int socket, std::span<const int> fds) {
  if (fds.size() > kMostSentDescriptors) return false;
  Descriptors sent(fds.size());
  if (cmsghdr* const header = CMSG_FIRSTHDR(&sent.message)) {
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  return ::sendmsg(socket, &sent.message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

DescriptorChannel::DescriptorChannel() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  sender_ = Fd(ends[0]);
  receiver_ = Fd(ends[1]);
}

bool DescriptorChannel::send(int fd) const { return send_descriptors(sender_.get(), std::span(&fd, fd < 0 ? 0U : 1U)); }

void DescriptorChannel::receive(Fd& kept) const {
  while (true) {
    Descriptors one(1);
    if (::recvmsg(receiver_.get(), &one.message, MSG_CMSG_CLOEXEC) != 1) return;
    kept.reset();
    const cmsghdr* const header = CMSG_FIRSTHDR(&one.message);
    if (header == nullptr || header->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    kept = Fd(fd);
  }
}

}  // namespace lrun::inline core
