#pragma once

namespace lrun::inline core {

/// Has the kernel send SIGCONT to this process once, when no process has the other end of this pipe any more: a process
/// that is stopped (SIGSTOP) cannot clean up for another one. SIGCONT continues it also where it blocks the signal.
void continue_at_end_of(int pipe_end);

}  // namespace lrun::inline core
