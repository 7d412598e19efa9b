#pragma once

#include <unistd.h>

#include <fstream>
#include <string>
#include <string_view>

namespace lrun::test {

/// Whether the memory of a process is what it holds. A sanitizer's allocator keeps what was freed, so that no bound
/// holds.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kMemoryTells = false;
#else
inline constexpr bool kMemoryTells = true;
#endif

/// A field of /proc/PID/status that the kernel gives in kB, in bytes; 0: the process or the field is gone.
inline long status_bytes(pid_t pid, std::string_view field) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field)) return std::stol(line.substr(field.size())) * 1024;
  }
  return 0;
}

inline long resident_bytes(pid_t pid = ::getpid()) { return status_bytes(pid, "VmRSS:"); }

/// The most that was ever resident.
inline long peak_bytes(pid_t pid) { return status_bytes(pid, "VmHWM:"); }

}  // namespace lrun::test
