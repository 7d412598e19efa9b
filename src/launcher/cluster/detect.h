#pragma once

#include "base/environment.h"
#include "cluster/allocation.h"

namespace lrun::launcher {

/// Finds the nodes that this run may use, and the source that named them.
///
/// `questions` come from questions_of() a request: driver and cgroups are read only when the plan depends on them.
/// \throws UserError  the variables of a cluster's manager contradict each other or cannot be read.
/// \throws std::system_error  the host's name or CPUs cannot be read.
Allocation detect_allocation(const Questions& questions, const Environment& environment);

/// True in every task but the first of a Slurm step, mpirun, jsrun or flux where all tasks have one command line: what
/// is wrong in that, the first one reports, and people read in one place what all of them print.
bool is_later_task(const Environment& environment);

}  // namespace lrun::launcher
