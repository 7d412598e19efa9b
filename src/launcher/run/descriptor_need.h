#pragma once

#include <cstddef>

#include "plan/launch_plan.h"
#include "process/process_limits.h"

namespace lrun::launcher {

/// The most file descriptors that the launcher of this node needs: its own, and for each worker a pidfd, a connection
/// to the store, and for each of two streams a pipe where lrun reads it and a file where lrun keeps it.
std::size_t descriptors_needed(const LaunchPlan& plan);

/// The most connections that the store accepts: far more than programs make, and few enough to leave descriptors for
/// everything else, other launchers among them.
std::size_t most_connections(const FileLimit& limit, const LaunchPlan& plan);

/// \throws UserError  the hard limit is lower than what is needed.
void check_descriptors(const FileLimit& limit, const LaunchPlan& plan);

}  // namespace lrun::launcher
