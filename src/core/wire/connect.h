#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/fd.h"

namespace lrun::inline core {

/// Waits until `fd` shows one of `events` (POLLIN, POLLOUT) or an error. False at the deadline.
/// \throws std::system_error  EBADF, ENOMEM.
bool poll_until(int fd, short events, SteadyTime deadline);

/// Begins to connect. The socket is nonblocking and close-on-exec, sends small messages at once, and becomes writable
/// when the attempt is over: connection_error() then says how it went.
/// \param what  opens the text of an error.
/// \throws std::system_error  ENETUNREACH and others that are known at once.
Fd begin_to_connect(const sockaddr& address, socklen_t size, const std::string& what);
/// The same to a numeric address. \throws std::system_error  EINVAL for a name.
Fd begin_to_connect(const std::string& address, std::uint16_t port);

/// Waits for the end of an attempt to connect.
/// \throws std::system_error  ECONNREFUSED and others, ETIMEDOUT at the deadline; with `what` as its text.
void finish_connecting(int fd, SteadyTime deadline, const std::string& what);

/// One attempt to connect to a numeric address. \throws std::system_error  as the two above.
Fd connect_to(const std::string& address, std::uint16_t port, SteadyTime deadline);

/// Why a socket could not be connected, as errno; 0: it is connected. A socket that the kernel has connected to itself
/// was refused: nobody listens there.
int connection_error(int fd);

/// The numeric addresses of a connection's two ends; an IPv4 address that is mapped into IPv6 is given as IPv4. Empty
/// for a socket that has none (any more).
struct ConnectionEnds {
  std::string own;
  std::string peer;
};
ConnectionEnds ends_of_connection(int fd);

}  // namespace lrun::inline core
