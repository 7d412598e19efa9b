#pragma once

namespace lrun::launcher {

/// The lrun of a host through which the head of a run reaches others: takes NodeFrames from standard input, connects to
/// the hosts that they name and to the launcher of its own one (HostRelay), and passes on what these say on standard
/// output. The end of standard input, or a long silence, is the end of the head: then all see the end of their input,
/// and what has not ended three seconds later is ended. \return the exit code.
int serve_relay();

}  // namespace lrun::launcher
