#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "inspect/stack_sample.h"

namespace lrun::launcher {

/// The calls of a process's main thread outside Python.
struct NativeLook {
  std::vector<StackFrame> frames{};  ///< innermost first, 64 at most
  std::string problem{};             ///< 'no native stack: …', or why it is cut off; empty: it is whole
};

/// Stops a process for the moment in which its registers and its stack are copied, a fraction of a millisecond, and
/// reads what the copy means in the files that it has loaded. x86-64 only. Those files, a debugger and the kernel may
/// hold up or end the caller, which stays its tracer where it did not stop in time: to be called in a child.
NativeLook look_at_native(pid_t pid);

/// One text for both, and back; empty for anything else.
std::string to_text(const NativeLook& look);
NativeLook native_look_from(std::string_view text);

}  // namespace lrun::launcher
