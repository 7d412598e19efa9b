#pragma once

#include <lrun/collectives.h>

#include <memory>
#include <string>

#include "runtime/collectives/bootstrap/group_options.h"

namespace lrun::detail {

/// Makes this rank's part of a group by the backend's name. Collective.
///
///   single   a world of one
///   shm      processes of one host
///   gloo     processes of any hosts, over TCP
///   shm+gloo shm inside each host, gloo between the hosts' leaders
///   nccl     GPUs; out of liblrun_cuda.so, which is opened here and by nobody else
///   auto     (or nothing) single for a world of one, shm for the processes of one host, gloo where every host has one
///            rank, shm+gloo elsewhere
///
/// \throws Unsupported  a name that is unknown, of a later version, or does not fit this world; one line with an
///                      alternative. Also 'threads', whose ranks are made together, by make_thread_group().
/// \throws CollectiveTimeout, Error  the ranks do not meet.
std::unique_ptr<Collectives> make_collectives(const std::string& name, const GroupOptions& options);

}  // namespace lrun::detail
