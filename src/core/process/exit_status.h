#pragma once

#include <signal.h>

#include <string>

namespace lrun::inline core {

/// How a process ended, as a value.
struct ExitStatus {
  enum class Kind {
    kExited,
    kSignaled,
    kUnknown,  ///< only its tracer knows how (tracer.h); `value` is 0
  };

  Kind kind = Kind::kExited;
  int value = 0;  ///< exit code 0…255, or the signal's number
  bool core_dumped = false;

  /// From waitid(); never from arithmetic on a raw wait status.
  static ExitStatus from_siginfo(const siginfo_t& info);

  [[nodiscard]] bool success() const { return kind == Kind::kExited && value == 0; }
  /// The code a shell shows: the exit code, or 128 + signal; 1 for kUnknown.
  [[nodiscard]] int shell_code() const;
  /// 'exited with code 3', 'died of SIGSEGV (invalid memory access, core dumped)'.
  [[nodiscard]] std::string text() const;

  bool operator==(const ExitStatus&) const = default;
};

}  // namespace lrun::inline core
