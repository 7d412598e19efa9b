#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/fd.h"

namespace lrun::detail {

/// A TCP connection to the first address of `host` (a name or an address) that takes one. Non-blocking, CLOEXEC.
///
/// Names are looked up on a separate thread, because the resolver has no deadline. A lookup that hangs is left behind.
/// \throws std::system_error  nobody listens there, the name is unknown, ETIMEDOUT at the deadline.
Fd connect_to_host(const std::string& host, std::uint16_t port, SteadyTime deadline);

}  // namespace lrun::detail
