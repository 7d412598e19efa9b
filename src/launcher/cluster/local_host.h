#pragma once

#include <string>

#include "base/environment.h"
#include "cluster/allocation.h"

namespace lrun::launcher {

/// This machine as a node: its name and, as far as `questions` ask, the CPUs that the quota allows, the GPUs that a
/// program started here would see, and the places of cores and GPUs.
/// \throws std::system_error  the host's name or CPUs cannot be read.
AllocatedNode local_host(const Questions& questions, const Environment& environment);

/// This machine's name, as uname prints it.
/// \throws std::system_error  it cannot be read.
std::string own_host_name();

}  // namespace lrun::launcher
