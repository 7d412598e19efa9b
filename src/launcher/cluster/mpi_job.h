#pragma once

#include <optional>
#include <string_view>

#include "cluster/managed_job.h"

namespace lrun::launcher {

/// The job of mpirun, jsrun or flux. With one task per node the rank of the task is that of the node. With several,
/// each task is the launcher of one rank, where the numbers of the tasks tell the node: as many on each, and in order.
/// Else only the number of tasks on this host is set. \throws UserError  as find_managed_job()
std::optional<ManagedJob> mpi_job(const ManagerView& view);

/// Whether this is a task of theirs other than the first, and all tasks have one command line. \return empty: it is no
/// task of theirs.
std::optional<bool> is_later_mpi_task(const Environment& environment);

/// A variable that each of their tasks has, and not what starts tasks on this host; empty: this is no task of theirs.
std::string_view variable_of_mpi_tasks(const Environment& environment);

/// Whether this is a task of mpirun or jsrun, and the first of its host. Not of Flux, which gives all tasks the same
/// environment.
bool is_first_mpi_task_of_host(const Environment& environment);

}  // namespace lrun::launcher
