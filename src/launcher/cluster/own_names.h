#pragma once

#include <string>
#include <vector>

namespace lrun::launcher {

/// Those of the names and addresses that mean this host: localhost and loopback addresses, its own name, its
/// interfaces' addresses, and any name that is resolved to one of these. A name is resolved in a child process with a
/// deadline, and only where nothing else decides.
std::vector<std::string> own_names(const std::vector<std::string>& names);

/// Whether this host's loopback interface has an IPv6 address.
bool has_ipv6_loopback();

/// The name is known, and is that of other hosts alone: none of its addresses is one of this host. A name that nobody
/// knows, or that is not resolved within the same deadline, may be any host's.
bool is_of_another_host(const std::string& name);

/// The name of the network interface that has this numeric address, 'lo' or what it is called for any of loopback's;
/// empty when none has.
std::string interface_of(const std::string& address);

}  // namespace lrun::launcher
