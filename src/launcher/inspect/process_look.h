#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/stack_sample.h"

namespace lrun::launcher {

/// The process to look at for a rank: itself, or, while it is a shell or wrapper that only waits for its one child,
/// that child, and so on. From /proc.
pid_t working_process(pid_t pid);

/// What /proc says about a process without disturbing it; `rank`, `python` and `native` are left empty.
StackSample look_at_process(pid_t pid);

/// True when the process has an interpreter of Python in it.
bool runs_python(pid_t pid);

}  // namespace lrun::launcher
