#pragma once

#include <sys/types.h>

#include <vector>

namespace lrun::launcher {

/// Those of `pids` that have a TCP connection to `port` of this host, found in /proc. In the order given.
std::vector<pid_t> connected_to(int port, const std::vector<pid_t>& pids);

}  // namespace lrun::launcher
