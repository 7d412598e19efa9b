#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/fd.h"

namespace lrun {

/// Waits until `fd` shows one of `events` (POLLIN, POLLOUT) or an error. False at the deadline.
/// \throws std::system_error  EBADF, ENOMEM.
bool poll_until(int fd, short events, SteadyTime deadline);

/// One attempt to connect to a numeric address; the socket is nonblocking and sends small messages at once.
/// \throws std::system_error  ECONNREFUSED and others, ETIMEDOUT at the deadline, EINVAL for a name.
Fd connect_to(const std::string& address, std::uint16_t port, SteadyTime deadline);

}  // namespace lrun
