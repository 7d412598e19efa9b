#pragma once

namespace lrun::launcher {

/// The launcher of one host of a job that was started elsewhere: reads its order from standard input, runs it in a
/// child process, and writes the child's output and end to standard output, as NodeFrames. At the end of standard input
/// the head is gone: the child is asked to end, and is killed two seconds later. \return the exit code of the child.
int serve_node();

}  // namespace lrun::launcher
