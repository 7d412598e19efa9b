// In: an address and a port. Out: a socket that listens there, or an error that names both. Called wherever a launcher
// serves something.
#include "store/listening_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <system_error>
#include <thread>

namespace lrun::launcher {
namespace {

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  int family = AF_INET;
  const char* name = "";
};

template <typename Concrete>
SocketAddress make_address(const Concrete& concrete, int family, const char* name) {
  SocketAddress address;
  std::memcpy(&address.bytes, &concrete, sizeof concrete);
  address.size = sizeof concrete;
  address.family = family;
  address.name = name;
  return address;
}

SocketAddress ipv4_address(std::uint16_t port, in_addr_t host, const char* name) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(host);
  return make_address(address, AF_INET, name);
}

SocketAddress any_ipv6_address(std::uint16_t port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  address.sin6_addr = in6addr_any;
  return make_address(address, AF_INET6, "[::]");
}

SocketAddress numeric_address(std::uint16_t port, const std::string& text) {
  sockaddr_in ipv4{};
  ipv4.sin_family = AF_INET;
  ipv4.sin_port = htons(port);
  if (::inet_pton(AF_INET, text.c_str(), &ipv4.sin_addr) == 1) return make_address(ipv4, AF_INET, text.c_str());
  sockaddr_in6 ipv6{};
  ipv6.sin6_family = AF_INET6;
  ipv6.sin6_port = htons(port);
  if (::inet_pton(AF_INET6, text.c_str(), &ipv6.sin6_addr) == 1) return make_address(ipv6, AF_INET6, text.c_str());
  throw std::system_error(EINVAL, std::generic_category(), "cannot listen on '" + text + "'");
}

void set_option(int fd, int level, int option, int value) {
  if (::setsockopt(fd, level, option, &value, sizeof value) != 0) {
    throw std::system_error(errno, std::generic_category(), "setsockopt");
  }
}

[[noreturn]] void throw_cannot_listen(const SocketAddress& address, std::uint16_t port) {
  throw std::system_error(errno, std::generic_category(),
                          std::string("cannot listen on ") + address.name + ":" + std::to_string(port));
}

Fd bind_to(const SocketAddress& address, std::uint16_t port) {
  Fd socket(::socket(address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw_cannot_listen(address, port);
  // A port that the user fixed is to be free again as soon as the last run's listener is gone. Not for a port of the
  // kernel's choice: it could then be one that another socket has bound and not yet listens on.
  if (port != 0) set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.family == AF_INET6) set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
  const auto* bytes = reinterpret_cast<const sockaddr*>(&address.bytes);
  if (::bind(socket.get(), bytes, address.size) != 0) throw_cannot_listen(address, port);
  return socket;
}

/// Of two sockets that begin to listen at the same time on one port the kernel may refuse both: each looks to the other
/// as if it listened already (the race that inet_csk_listen_start() tells of). So that one of them gets it, each
/// process that could bind the port tries again, after a pause of its own.
Fd listen_on(const SocketAddress& address, std::uint16_t port) {
  constexpr int kMostTries = 10;
  constexpr std::uint32_t kLongestPause = 2000;
  for (int tries = 1;; ++tries) {
    Fd socket = bind_to(address, port);
    // The kernel cuts the backlog down to net.core.somaxconn.
    if (::listen(socket.get(), INT_MAX) == 0) return socket;
    if (errno != EADDRINUSE || tries == kMostTries) throw_cannot_listen(address, port);
    std::this_thread::sleep_for(std::chrono::microseconds(std::random_device()() % kLongestPause));
  }
}

/// \param open  listen_on() or bind_to()
Fd open_on(decltype(listen_on)& open, StoreReach reach, std::uint16_t port, const std::string& address) {
  if (!address.empty()) return open(numeric_address(port, address), port);
  if (reach == StoreReach::kLoopback) return open(ipv4_address(port, INADDR_LOOPBACK, "127.0.0.1"), port);
  try {
    return open(any_ipv6_address(port), port);
  } catch (const std::system_error& error) {
    if (error.code().value() != EAFNOSUPPORT && error.code().value() != EADDRNOTAVAIL) throw;
  }
  return open(ipv4_address(port, INADDR_ANY, "0.0.0.0"), port);
}

}  // namespace

Fd open_listening_socket(StoreReach reach, std::uint16_t port, const std::string& address) {
  return open_on(listen_on, reach, port, address);
}

Fd keep_port(StoreReach reach, std::uint16_t port, const std::string& address) {
  Fd socket = open_on(bind_to, reach, port, address);
  set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);  // looked at when another one is bound
  return socket;
}

std::uint16_t port_of_socket(int fd) {
  sockaddr_storage bytes{};
  socklen_t size = sizeof bytes;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bytes), &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "getsockname");
  }
  // The port lies at the same place in both families' addresses.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  in_port_t port = 0;
  std::memcpy(&port, reinterpret_cast<const char*>(&bytes) + offsetof(sockaddr_in, sin_port), sizeof port);
  return ntohs(port);
}

}  // namespace lrun::launcher
