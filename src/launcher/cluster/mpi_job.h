#pragma once

#include <optional>

#include "cluster/managed_job.h"

namespace lrun::launcher {

/// The job of mpirun, jsrun or flux. With one task per node the rank of the task is that of the node. With several, the
/// order of the nodes is unknown, and only the number of tasks on this host is set.
/// \throws UserError  as find_managed_job()
std::optional<ManagedJob> mpi_job(const ManagerView& view);

}  // namespace lrun::launcher
