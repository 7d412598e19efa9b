#pragma once

#include <string_view>
#include <vector>

#include "inspect/stack_sample.h"

namespace lrun::launcher {

// The output of other programs about stacks, as frames, innermost first. Pure. Unknown lines are skipped, and at most
// 64 frames of at most 300 bytes are kept.

/// `eu-stack -1 -m`: '#0  0x00007f… read - /usr/lib/libc.so.6'.
std::vector<StackFrame> parse_eu_stack(std::string_view text);

/// `gdb -batch -ex bt` with `set print frame-arguments none`: '#1  0x0000… in step (...) at train.cc:12'.
std::vector<StackFrame> parse_gdb_backtrace(std::string_view text);

/// `py-spy dump`: of the main thread, otherwise of the first one: '    step (train.py:12)'.
std::vector<StackFrame> parse_py_spy(std::string_view text);

}  // namespace lrun::launcher
