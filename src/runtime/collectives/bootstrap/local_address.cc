#include "runtime/collectives/bootstrap/local_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>
#include <system_error>

#include "base/fd.h"

namespace lrun::detail {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// The first address that the number stands for; asks no resolver.
AddressList parse_number(const std::string& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  if (::getaddrinfo(address.c_str(), "9", &hints, &list) != 0) list = nullptr;
  return {list, &::freeaddrinfo};
}

}  // namespace

std::string local_address_of(int socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  std::array<char, NI_MAXHOST> text{};
  if (::getsockname(socket, address, &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "the address of a connection");
  }
  if (::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    throw std::system_error(EAFNOSUPPORT, std::generic_category(), "the address of a connection");
  }
  return text.data();
}

std::optional<std::string> local_address_towards(const std::string& address) {
  const AddressList list = parse_number(address);
  if (!list) return std::nullopt;
  const Fd socket(::socket(list->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), list->ai_addr, list->ai_addrlen) != 0) return std::nullopt;
  return local_address_of(socket.get());
}

bool is_loopback(const std::string& address) {
  const AddressList list = parse_number(address);
  if (!list) return false;
  if (list->ai_family == AF_INET) {
    const auto* ip = reinterpret_cast<const sockaddr_in*>(list->ai_addr);
    return (ntohl(ip->sin_addr.s_addr) >> 24) == 127;
  }
  const auto* ip = reinterpret_cast<const sockaddr_in6*>(list->ai_addr);
  return IN6_IS_ADDR_LOOPBACK(&ip->sin6_addr);
}

}  // namespace lrun::detail
