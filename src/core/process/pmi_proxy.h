#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

namespace lrun::inline core {

/// The process that started this host's tasks of a job of MPICH's or Intel's mpiexec, which gives the job no name. It
/// has the other end of the socket that each task got from it, also through a shell in between. The kernel knows which
/// process made the socket; nothing is read from it, because it is MPI's.
/// \param descriptor  the value of PMI_FD.
/// \return nothing if it is no such socket, was closed, or comes from outside of a container.
std::optional<pid_t> pmi_proxy(std::string_view descriptor);

}  // namespace lrun::inline core
