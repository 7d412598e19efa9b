#pragma once

#include <optional>
#include <string>

namespace lrun::detail {

/// This end of a connected socket as a number: '192.0.2.7', 'fd00::7'.
/// \throws std::system_error  the socket is not connected over IP.
std::string local_address_of(int socket);

/// The address that this machine would use to reach `address`, a number: that of the interface of the route. No packet
/// is sent. Empty when there is no route, or `address` is no number.
std::optional<std::string> local_address_towards(const std::string& address);

/// Whether the address can be reached from this machine only ('127.0.1.1', '::1').
bool is_loopback(const std::string& address);

}  // namespace lrun::detail
