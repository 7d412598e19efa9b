// Decides whether names and addresses mean this host, by its interfaces and the name service. local_host(), detect()
// and multihost/named_hosts call it.
#include "cluster/own_names.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

#include "base/child_query.h"
#include "base/numeric_address.h"

namespace lrun::launcher {
namespace {

constexpr Duration kNameServiceLimit(3000);

/// The bytes of an IP address; empty for another family. An IPv4 address that is mapped into IPv6 gives IPv4 bytes.
std::string address_bytes(const sockaddr* address) {
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof v4);
    return {reinterpret_cast<const char*>(&v4.sin_addr), sizeof v4.sin_addr};
  }
  if (address->sa_family != AF_INET6) return {};
  sockaddr_in6 v6{};
  std::memcpy(&v6, address, sizeof v6);
  const std::string bytes(reinterpret_cast<const char*>(&v6.sin6_addr), sizeof v6.sin6_addr);
  return IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) ? bytes.substr(12) : bytes;
}

bool is_loopback_bytes(const std::string& bytes) {
  if (bytes.size() == sizeof(in_addr)) return bytes.front() == 127;
  return bytes.size() == sizeof(in6_addr) && std::memcmp(bytes.data(), &in6addr_loopback, sizeof in6addr_loopback) == 0;
}

/// The name of the first interface that `has_it` accepts.
std::string find_interface(const std::function<bool(const ifaddrs&)>& has_it) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (has_it(*entry)) return entry->ifa_name;
  }
  return {};
}

std::string interface_with(const std::string& bytes) {
  return find_interface([&](const ifaddrs& entry) { return address_bytes(entry.ifa_addr) == bytes; });
}

bool is_of_an_interface(const std::string& bytes) { return !interface_with(bytes).empty(); }

enum class Owner { kThisHost, kOtherHost, kUnknown };

/// One address of this host is enough: names may have several. A numeric name does not reach the name service.
Owner owner_by_address(const std::string& name, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &list) != 0) return Owner::kUnknown;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    const std::string bytes = address_bytes(entry->ai_addr);
    if (!bytes.empty() && (is_loopback_bytes(bytes) || is_of_an_interface(bytes))) return Owner::kThisHost;
  }
  return Owner::kOtherHost;
}

bool same_name(const std::string& left, const std::string& right) {
  return left.size() == right.size() && ::strcasecmp(left.c_str(), right.c_str()) == 0;
}

Owner owner_of(const std::string& name) {
  char own[256] = {};
  if (same_name(name, "localhost")) return Owner::kThisHost;
  if (::gethostname(own, sizeof own - 1) == 0 && same_name(name, own)) return Owner::kThisHost;
  if (is_numeric_address(name)) return owner_by_address(name, AI_NUMERICHOST);
  // getaddrinfo() has no deadline of its own, and a name server that is down may take minutes.
  const ChildAnswer answer = query_in_child(
      [&] {
        const Owner found = owner_by_address(name, 0);
        return std::string(found == Owner::kThisHost ? "this" : found == Owner::kOtherHost ? "other" : "unknown");
      },
      kNameServiceLimit);
  if (answer.end != ChildAnswer::End::kAnswered) return Owner::kUnknown;
  return answer.text == "this" ? Owner::kThisHost : answer.text == "other" ? Owner::kOtherHost : Owner::kUnknown;
}

}  // namespace

std::vector<std::string> own_names(const std::vector<std::string>& names) {
  std::vector<std::string> own;
  std::copy_if(names.begin(), names.end(), std::back_inserter(own),
               [](const std::string& name) { return owner_of(name) == Owner::kThisHost; });
  return own;
}

bool has_ipv6_loopback() {
  return is_of_an_interface({reinterpret_cast<const char*>(&in6addr_loopback), sizeof in6addr_loopback});
}

bool is_of_another_host(const std::string& name) { return owner_of(name) == Owner::kOtherHost; }

std::string interface_of(const std::string& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* list = nullptr;
  if (::getaddrinfo(address.c_str(), nullptr, &hints, &list) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  const std::string bytes = address_bytes(list->ai_addr);
  if (!is_loopback_bytes(bytes)) return interface_with(bytes);
  return find_interface([](const ifaddrs& entry) { return (entry.ifa_flags & IFF_LOOPBACK) != 0; });
}

}  // namespace lrun::launcher
