#include "remote/reached_hosts.h"

#include <arpa/inet.h>
#include <netinet/in.h>

namespace lrun::launcher {
namespace {

bool is_loopback(const std::string& address) {
  in_addr v4{};
  in6_addr v6{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24U) == IN_LOOPBACKNET;
  if (::inet_pton(AF_INET6, address.c_str(), &v6) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == IN_LOOPBACKNET);
}

}  // namespace

std::string rendezvous_address(const ReachedHost& first, const ReachedHost& host) {
  const std::string& address = first.ready.own_address;
  if (first.here && host.here) return "127.0.0.1";
  // A host that is reached over loopback is this machine. The others see its address as that of the head.
  if (first.here || (is_loopback(address) && !host.here && !is_loopback(host.ready.own_address))) {
    return host.ready.head_address.empty() ? first.name : host.ready.head_address;
  }
  return address.empty() ? first.name : address;
}

std::vector<std::string> names_of_machine(const std::vector<ReachedHost>& hosts, std::size_t host) {
  const std::string& machine = hosts[host].ready.machine;
  std::vector<std::string> names;
  for (const ReachedHost& other : hosts) {
    if (!machine.empty() && other.ready.machine == machine) names.push_back(other.name);
  }
  return names.size() > 1 ? names : std::vector<std::string>();
}

}  // namespace lrun::launcher
