#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/duration.h"
#include "process/guard.h"
#include "report/message_sink.h"

namespace lrun::launcher {

/// How long the kernel may take to end what workers left behind.
inline constexpr Duration kCleanUpLimit(5000);
/// The same limit where the kernel had that time already, or where this node sends no heartbeats meanwhile: it has to
/// be shorter than a heartbeat.
inline constexpr Duration kShortCleanUpLimit(2000);

/// Ends everything that the workers left, and warns of what does not end.
/// \param spared  children that are no workers and live on
/// \return false when something runs on.
bool end_what_is_left(const Guard& guard, Duration limit, MessageSink& sink, const std::vector<pid_t>& spared = {});

/// The command line of a program that workers have started and left running, such as with '&' in a script; empty: they
/// left nothing. Copies of the worker and helpers of Python's multiprocessing are no programs of their own. Waits up to
/// 200 ms for one that is just ending.
/// \param worker  the words of the workers' command line
/// \param spared  processes that no worker started
std::string program_left_behind(const std::vector<std::string>& worker, const std::vector<pid_t>& spared);

/// Kills the children of this process and its cgroup, also processes that hold the pipe of a dead worker. Orphans of
/// the killed processes become children of this one, so call it again on the next SIGCHLD.
void kill_children(const Guard& guard);

}  // namespace lrun::launcher
