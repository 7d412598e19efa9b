#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace lrun::launcher {

/// The line of an instruction of a function of CPython 3.9 to 3.15, by the function's own table of lines: `co_lnotab`
/// in 3.9, `co_linetable` since 3.10. Empty: the instruction has none. Pure; the table may hold anything. \param minor
/// 9 in Python 3.9.18 \param offset  of the instruction, in bytes; less than 0: the function was just entered
std::optional<int> python_line(int minor, std::span<const unsigned char> table, int first_line, std::int64_t offset);

}  // namespace lrun::launcher
