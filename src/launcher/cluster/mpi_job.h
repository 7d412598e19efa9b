#pragma once

#include <optional>

#include "cluster/managed_job.h"

namespace lrun::launcher {

/// What mpirun, jsrun or flux tell each of their tasks: with one a node, the task's rank is the node's. They say
/// nothing of the nodes' order where nodes have several tasks, so of these only the number on this host is told.
/// \throws UserError  as find_managed_job()
std::optional<ManagedJob> mpi_job(const ManagerView& view);

}  // namespace lrun::launcher
