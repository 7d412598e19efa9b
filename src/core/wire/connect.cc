// In: addresses and deadlines. Out: connected sockets. Called by both products: the launcher connects from its loop and
// never waits here, liblrun waits.
#include "wire/connect.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <system_error>

namespace lrun::inline core {
namespace {

/// Rounded up, so that a caller does not spin through the last millisecond.
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

std::string numeric_text(const sockaddr_storage& bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  if (bytes.ss_family == AF_INET) {
    sockaddr_in ipv4{};
    std::memcpy(&ipv4, &bytes, sizeof ipv4);
    return ::inet_ntop(AF_INET, &ipv4.sin_addr, text, sizeof text) != nullptr ? text : "";
  }
  if (bytes.ss_family != AF_INET6) return {};
  sockaddr_in6 ipv6{};
  std::memcpy(&ipv6, &bytes, sizeof ipv6);
  constexpr std::size_t kPrefixOfMapped = 12;
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr);
  const void* const address = mapped ? &ipv6.sin6_addr.s6_addr[kPrefixOfMapped] : ipv6.sin6_addr.s6_addr;
  return ::inet_ntop(mapped ? AF_INET : AF_INET6, address, text, sizeof text) != nullptr ? text : "";
}

/// The kernel may choose as our own port the very port that we connect to: both ends are then one socket.
bool is_connected_to_itself(int fd) {
  sockaddr_storage own{};
  sockaddr_storage peer{};
  socklen_t own_size = sizeof own;
  socklen_t peer_size = sizeof peer;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
         ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 && own_size == peer_size &&
         std::memcmp(&own, &peer, own_size) == 0;
}

std::string connecting_to(const std::string& address, std::uint16_t port) {
  return "cannot connect to " + address + " port " + std::to_string(port);
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

Fd begin_to_connect(const sockaddr& address, socklen_t size, const std::string& what) {
  const auto fail = [&] { throw std::system_error(errno, std::generic_category(), what); };
  Fd socket(::socket(address.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) fail();
  const int on = 1;
  if (::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail();
  // A signal does not end a nonblocking attempt to connect.
  if (::connect(socket.get(), &address, size) != 0 && errno != EINPROGRESS && errno != EINTR) fail();
  return socket;
}

Fd begin_to_connect(const std::string& address, std::uint16_t port) {
  const std::string what = connecting_to(address, port);
  AnyAddress parsed{};
  const socklen_t size = parse_address(address, port, parsed);
  if (size == 0) throw std::system_error(EINVAL, std::generic_category(), what);
  return begin_to_connect(parsed.any, size, what);
}

void finish_connecting(int fd, SteadyTime deadline, const std::string& what) {
  const int error = poll_until(fd, POLLOUT, deadline) ? connection_error(fd) : ETIMEDOUT;
  if (error != 0) throw std::system_error(error, std::generic_category(), what);
}

Fd connect_to(const std::string& address, std::uint16_t port, SteadyTime deadline) {
  Fd socket = begin_to_connect(address, port);
  finish_connecting(socket.get(), deadline, connecting_to(address, port));
  return socket;
}

int connection_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error == 0 && is_connected_to_itself(fd) ? ECONNREFUSED : error;
}

ConnectionEnds ends_of_connection(int fd) {
  ConnectionEnds ends;
  sockaddr_storage bytes{};
  socklen_t size = sizeof bytes;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bytes), &size) == 0) ends.own = numeric_text(bytes);
  size = sizeof bytes;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&bytes), &size) == 0) ends.peer = numeric_text(bytes);
  return ends;
}

}  // namespace lrun::inline core
