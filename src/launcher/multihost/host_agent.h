#pragma once

namespace lrun::launcher {

/// The launcher of one host of a job that somebody started elsewhere: takes its order from standard input, runs it in a
/// child process, and passes on what comes of it on standard output, as NodeFrames. The end of standard input is the
/// end of who started it: what runs here is asked to end, and is ended two seconds later. \return the exit code of the
/// child.
int serve_node();

}  // namespace lrun::launcher
