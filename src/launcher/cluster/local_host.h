#pragma once

#include <string>

#include "base/environment.h"
#include "cluster/allocation.h"

namespace lrun::launcher {

/// This machine as an allocation of one node: its name and, when asked for, the CPUs that its quota leaves us, the
/// GPUs that a program started here would see, and where cores and GPUs are.
/// \throws std::system_error  the host's name or CPUs cannot be read.
AllocatedNode local_host(const Questions& questions, const Environment& environment);

/// This machine's name, as uname gives it.
/// \throws std::system_error  it cannot be read.
std::string own_host_name();

}  // namespace lrun::launcher
