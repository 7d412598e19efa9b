#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lrun::inline core {

/// The parts of /proc/PID/stat that are wanted; 0 where the kernel wrote less.
struct ProcessStat {
  std::string command;
  char state = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  pid_t foreground_group = 0;        ///< of its terminal; -1: it has none
  std::uint64_t ticks = 0;           ///< of processor time in user and kernel mode, as sysconf(_SC_CLK_TCK) counts them
  std::uint64_t children_ticks = 0;  ///< the same of children that it has reaped
  int threads = 0;
  int exit_code = 0;  ///< of a process that has ended, as wait() tells it; also 0 where the reader may not know it
  std::uint64_t started_ticks = 0;   ///< since the machine started
  std::uint64_t resident_pages = 0;  ///< of memory; a page that processes share is one of each

  bool operator==(const ProcessStat&) const = default;
};

/// Empty when `text` is not such a line. The command may hold any byte, parentheses too. Pure.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

/// Of a process as /proc shows it now; empty when there is none, or no /proc.
std::optional<ProcessStat> stat_of_process(pid_t pid);

}  // namespace lrun::inline core
