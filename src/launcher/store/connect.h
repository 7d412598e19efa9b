#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/fd.h"

namespace lrun::launcher {

/// Waits until `fd` shows one of `events` (POLLIN, POLLOUT) or an error. False at the deadline.
/// \throws std::system_error  EBADF, ENOMEM.
bool poll_until(int fd, short events, SteadyTime deadline);

/// One attempt to connect to a numeric address; the socket is nonblocking and sends small messages at once.
/// \throws std::system_error  ECONNREFUSED and others, ETIMEDOUT at the deadline, EINVAL for a name.
Fd connect_to(const std::string& address, std::uint16_t port, SteadyTime deadline);

/// Begins to connect to a numeric address; the socket is nonblocking, sends small messages at once, and becomes
/// writable when it is connected or cannot be: connection_error() says which. \throws std::system_error  EINVAL for a
/// name, ENETUNREACH and others that are known at once.
Fd begin_to_connect(const std::string& address, std::uint16_t port);

/// Why a socket could not be connected, as errno; 0: it is connected.
int connection_error(int fd);

/// The numeric addresses of a connection's two ends; an IPv4 one that is mapped into IPv6 as IPv4. Empty for a socket
/// that has none (any more).
struct ConnectionEnds {
  std::string own;
  std::string peer;
};
ConnectionEnds ends_of_connection(int fd);

}  // namespace lrun::launcher
