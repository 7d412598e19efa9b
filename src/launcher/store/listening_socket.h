#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"

namespace lrun::launcher {

/// The clients that may connect.
enum class StoreReach {
  kLoopback,  ///< 127.0.0.1: a job on one node
  kNetwork,   ///< every interface, IPv6 and IPv4, or IPv4 alone where there is no IPv6
};

/// A TCP socket that listens with the longest queue the kernel allows; nonblocking, close-on-exec. Connections accepted
/// from it have TCP_NODELAY and keep-alive already: Linux lets them inherit both.
/// \param port     0: the kernel chooses a free one.
/// \param address  numeric: only this one of the host's addresses; empty: as `reach` says.
/// \throws std::system_error  EADDRINUSE, EACCES and others; the message names address and port.
Fd open_listening_socket(StoreReach reach, std::uint16_t port, const std::string& address = {});

/// A TCP socket that is bound and does not listen, for a process that is to listen on its port later: the kernel gives
/// it to no process that asks for any port, and to one that names it only with SO_REUSEADDR. Else as
/// open_listening_socket().
Fd keep_port(StoreReach reach, std::uint16_t port, const std::string& address = {});

/// The port a socket is bound to.
/// \throws std::system_error  ENOTSOCK, EBADF.
std::uint16_t port_of_socket(int fd);

}  // namespace lrun::launcher
