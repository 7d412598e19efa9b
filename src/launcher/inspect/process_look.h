#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "inspect/stack_sample.h"

namespace lrun::launcher {

/// The process that does a rank's work: the rank's own, or, where that is a shell or wrapper that only waits for its
/// one child, that child, and so on. From /proc.
pid_t working_process(pid_t pid);

/// A process as /proc shows it, undisturbed; `rank`, `python` and `native` are left empty.
StackSample look_at_process(pid_t pid);

/// A number that grows while the main thread of a process works: how often it was put on a processor, plus the
/// milliseconds that it used; 0: not known. From /proc.
std::int64_t activity_of(pid_t pid);
/// The sum over all threads of a process.
std::int64_t activity_of_threads(pid_t pid);

/// Why the kernel does not let us look into a process, after the errno that it gave, and what to do.
std::string refusal_of_look(pid_t pid, int error_number);

/// Why Yama may keep lrun from looking into processes, and what to do; empty where it does not.
std::string yama_refusal();

}  // namespace lrun::launcher
