#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "process/exit_status.h"

namespace lrun::inline core {

/// Processor time used so far by all living processes of the sessions that `leaders` lead, in clock ticks of
/// sysconf(_SC_CLK_TCK). From /proc; 0 where that is missing.
std::uint64_t cpu_ticks_of_sessions(const std::vector<pid_t>& leaders);

/// The limit of CPU time (RLIMIT_CPU), in seconds, that ended a child, or the program that this child was a shell for;
/// 0: it ended for another reason, or that is unknown. \param pid  of a child that has ended and is not reaped: /proc
/// still has it
std::uint64_t cpu_limit_used_up(pid_t pid, const ExitStatus& ending);

/// The limits of CPU time in a text of /proc/PID/limits, in seconds; 0: none. Pure.
struct CpuLimits {
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
  bool operator==(const CpuLimits&) const = default;
};
CpuLimits parse_cpu_limits(std::string_view text);

}  // namespace lrun::inline core
