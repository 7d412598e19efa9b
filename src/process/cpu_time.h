#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace lrun {

/// Processor time used so far by all living processes of the sessions that `leaders` lead, in clock ticks of
/// sysconf(_SC_CLK_TCK). From /proc; 0 where that is missing.
std::uint64_t cpu_ticks_of_sessions(const std::vector<pid_t>& leaders);

}  // namespace lrun
