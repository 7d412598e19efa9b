#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "inspect/stack_sample.h"

namespace lrun::launcher {

/// The threads of a process that Python knows.
struct PythonLook {
  std::vector<PythonStack> threads{};  ///< 64 at most, the main one first; empty: see `problem`
  std::string problem{};               ///< 'no Python stack: …'; empty without threads: it is no Python
};

/// Reads the stacks of CPython 3.9 to 3.15 in a process with process_vm_readv: nothing is stopped, traced or called
/// there, and none of its files is opened. A process that waits costs less than a millisecond; one that moves is read
/// again for 10. The kernel's list of its memory has no deadline: a process that hangs in mmap() makes the caller wait.
PythonLook look_at_python(pid_t pid);

}  // namespace lrun::launcher
