#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

namespace lrun::detail {

/// The process that started this host's tasks of a job of MPICH's or Intel's mpiexec, which gives the job no name: the
/// other end of the socket that each task got from it, and keeps through a shell that it may run in. The kernel tells
/// who made the socket; nothing is read from it, as it is MPI's.
/// \param descriptor  the value of PMI_FD.
/// \return nothing where it is no such socket, was closed, or comes from outside of a container.
std::optional<pid_t> pmi_proxy(std::string_view descriptor);

}  // namespace lrun::detail
