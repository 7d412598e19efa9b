#include "process/descriptor_channel.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace lrun::inline core {
namespace {

/// Room for one descriptor beside a message of one byte.
struct OneDescriptor {
  char byte = 0;
  iovec bytes{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};

  OneDescriptor() {
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
};

}  // namespace

DescriptorChannel::DescriptorChannel() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  sender_ = Fd(ends[0]);
  receiver_ = Fd(ends[1]);
}

bool DescriptorChannel::send(int fd) const {
  OneDescriptor one;
  if (fd < 0) {
    one.message.msg_control = nullptr;
    one.message.msg_controllen = 0;
  } else {
    cmsghdr* const header = CMSG_FIRSTHDR(&one.message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  return ::sendmsg(sender_.get(), &one.message, MSG_NOSIGNAL) == 1;
}

void DescriptorChannel::receive(Fd& kept) const {
  while (true) {
    OneDescriptor one;
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
