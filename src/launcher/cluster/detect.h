#pragma once

#include "base/environment.h"
#include "cluster/allocation.h"

namespace lrun::launcher {

/// Finds out where this run may be placed and says which source decided.
///
/// `questions` come from questions_of() a request: driver and cgroups are looked at only when the plan depends on it.
/// \throws UserError  what a cluster's manager says cannot be used.
/// \throws std::system_error  the host's name or CPUs cannot be read.
Allocation detect_allocation(const Questions& questions, const Environment& environment);

}  // namespace lrun::launcher
