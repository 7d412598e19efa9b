#pragma once

#include "base/environment.h"
#include "cluster/allocation.h"

namespace lrun {

/// This machine as an allocation of one node: its name, the CPUs that this process may use and, when asked for, the
/// GPUs that a program started here would see.
/// \throws std::system_error  the host's name or CPUs cannot be read.
AllocatedNode local_host(bool ask_gpus, const Environment& environment);

}  // namespace lrun
