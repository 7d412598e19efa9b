#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// The system call in which a thread waits.
struct SystemCall {
  long number = 0;
  std::uint64_t first_argument = 0;

  bool operator==(const SystemCall&) const = default;
};

/// Reads /proc/PID/syscall: '0 0x3 0x7ff… …'. Empty for a thread that runs, or waits outside of a system call.
std::optional<SystemCall> parse_system_call(std::string_view text);

/// 'read', 'futex'; 'system call 999' for one that threads do not usually wait in.
std::string system_call_name(long number);

/// True when the first argument is a descriptor: read, write, recv, ….
bool waits_for_descriptor(long number);

}  // namespace lrun::launcher
