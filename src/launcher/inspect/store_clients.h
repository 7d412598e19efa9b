#pragma once

#include <sys/types.h>

#include <vector>

namespace lrun::launcher {

/// Those of `pids` that have a TCP connection to `port`, found in /proc; each may be in a network namespace of its own.
/// A process that this one may not look into counts as connected. In the order given.
std::vector<pid_t> connected_to(int port, const std::vector<pid_t>& pids);

}  // namespace lrun::launcher
