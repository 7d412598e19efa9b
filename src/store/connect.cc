#include "store/connect.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <system_error>

namespace lrun {
namespace {

/// Rounded up, so that nobody spins through the last millisecond.
int milliseconds_until(SteadyTime deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
}

union AnyAddress {
  sockaddr any;
  sockaddr_in ipv4;
  sockaddr_in6 ipv6;
};

/// The size of the address, 0 when `text` is not a numeric one.
socklen_t parse_address(const std::string& text, std::uint16_t port, AnyAddress& address) {
  address.ipv6 = sockaddr_in6{};
  if (::inet_pton(AF_INET, text.c_str(), &address.ipv4.sin_addr) == 1) {
    address.ipv4.sin_family = AF_INET;
    address.ipv4.sin_port = htons(port);
    return sizeof address.ipv4;
  }
  if (::inet_pton(AF_INET6, text.c_str(), &address.ipv6.sin6_addr) == 1) {
    address.ipv6.sin6_family = AF_INET6;
    address.ipv6.sin6_port = htons(port);
    return sizeof address.ipv6;
  }
  return 0;
}

int error_of_socket(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

bool poll_until(int fd, short events, SteadyTime deadline) {
  while (true) {
    pollfd entry{fd, events, 0};
    const int count = ::poll(&entry, 1, milliseconds_until(deadline));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "poll");
    if (std::chrono::steady_clock::now() >= deadline) return false;
  }
}

Fd connect_to(const std::string& address, std::uint16_t port, SteadyTime deadline) {
  const std::string what = "cannot connect to " + address + " port " + std::to_string(port);
  const auto fail = [&what](int error) { throw std::system_error(error, std::generic_category(), what); };
  AnyAddress parsed{};
  const socklen_t size = parse_address(address, port, parsed);
  if (size == 0) fail(EINVAL);
  Fd socket(::socket(parsed.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) fail(errno);
  const int on = 1;
  if (::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail(errno);
  if (::connect(socket.get(), &parsed.any, size) != 0) {
    if (errno != EINPROGRESS) fail(errno);
    if (!poll_until(socket.get(), POLLOUT, deadline)) fail(ETIMEDOUT);
    if (const int error = error_of_socket(socket.get()); error != 0) fail(error);
  }
  return socket;
}

}  // namespace lrun
