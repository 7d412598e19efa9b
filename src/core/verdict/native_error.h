#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verdict/python_traceback.h"

namespace lrun::inline core {

/// Where a fault happened, by the line that a program with liblrun prints: 'lrun: SIGSEGV at address 0x10 in
/// /lib/libtorch_cpu.so+0x1234, called from /home/me/train+0x5678'.
struct FaultReport {
  std::string_view address;  ///< '0x10'; empty: none
  std::string_view place;    ///< '/lib/libtorch_cpu.so+0x1234'
  std::string_view caller;   ///< '/home/me/train+0x5678', the program's own code; empty: `place` is that

  /// The place in the program's own code, as far as known.
  [[nodiscard]] std::string_view own_place() const { return caller.empty() ? place : caller; }
};

/// Empty for any other line. Pure; views into the line.
std::optional<FaultReport> parse_fault_report(std::string_view line);

/// The last error in `lines` that a compiled program or the C library reports: an uncaught exception with its what(), a
/// failed assertion, a sanitizer's report, corrupted memory, a panic, a missing shared library. Pure.
std::optional<FoundError> find_native_error(const std::vector<std::string>& lines);

}  // namespace lrun::inline core
