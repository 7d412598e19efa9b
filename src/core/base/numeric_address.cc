#include "base/numeric_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

namespace lrun::inline core {

bool is_numeric_address(const std::string& address) {
  in6_addr bytes{};
  return ::inet_pton(AF_INET, address.c_str(), &bytes) == 1 || ::inet_pton(AF_INET6, address.c_str(), &bytes) == 1;
}

std::string without_brackets(const std::string& host) {
  if (!host.starts_with('[') || !host.ends_with(']')) return host;
  const std::string inside = host.substr(1, host.size() - 2);
  in6_addr bytes{};
  return ::inet_pton(AF_INET6, inside.substr(0, inside.find('%')).c_str(), &bytes) == 1 ? inside : host;
}

std::string loopback_address_of(const std::string& host) {
  if (host == "localhost") return "127.0.0.1";
  in_addr ipv4{};
  if (::inet_pton(AF_INET, host.c_str(), &ipv4) == 1) {
    return ntohl(ipv4.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET ? host : std::string();
  }
  in6_addr ipv6{};
  const bool is_ipv6 = ::inet_pton(AF_INET6, host.c_str(), &ipv6) == 1;
  return is_ipv6 && IN6_IS_ADDR_LOOPBACK(&ipv6) ? "::1" : std::string();
}

}  // namespace lrun::inline core
