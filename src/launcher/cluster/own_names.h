#pragma once

#include <string>
#include <vector>

namespace lrun::launcher {

/// Those of the names and addresses that mean this host: localhost, loopback addresses, the host's name, the addresses
/// of its interfaces, and any name that resolves to one of these. A child process with a deadline resolves names, and
/// only those that nothing else decides.
std::vector<std::string> own_names(const std::vector<std::string>& names);

/// Whether this host's loopback interface has an IPv6 address.
bool has_ipv6_loopback();

/// Whether the name resolves, and to addresses of other hosts only. False of a name that does not resolve within the
/// same deadline: it may be any host's.
bool is_of_another_host(const std::string& name);

/// The network interface that has this numeric address. Any loopback address gives the loopback interface, 'lo'. Empty
/// when no interface has it.
std::string interface_of(const std::string& address);

}  // namespace lrun::launcher
