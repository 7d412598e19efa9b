#pragma once

namespace lrun::launcher {

/// The lrun of a host through which the head of a run reaches others: reads NodeFrames from standard input, connects to
/// the hosts that they name and to the launcher of its own host (HostRelay), and writes their frames to standard
/// output. At the end of standard input, or after a long silence, the head is gone: then the input of all of them ends,
/// and those that have not ended three seconds later are killed. \return the exit code.
int serve_relay();

}  // namespace lrun::launcher
