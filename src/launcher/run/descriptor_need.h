#pragma once

#include <cstddef>

#include "plan/launch_plan.h"
#include "process/process_limits.h"

namespace lrun::launcher {

/// File descriptors that the launcher of this node needs at most: its own, and for each worker a pidfd, a connection to
/// the store, and what its two streams take: a pipe where lrun reads it, and one more where it keeps it in a file.
std::size_t descriptors_needed(const LaunchPlan& plan);

/// The most connections to the store that can be taken besides: far more than programs make, and never so many that
/// there are no descriptors left for the rest, launchers among them.
std::size_t most_connections(const FileLimit& limit, const LaunchPlan& plan);

/// \throws UserError  the hard limit is lower than what is needed.
void check_descriptors(const FileLimit& limit, const LaunchPlan& plan);

}  // namespace lrun::launcher
