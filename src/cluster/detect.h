#pragma once

#include "base/environment.h"
#include "cluster/allocation.h"

namespace lrun {

/// Finds out where this run may be placed and says which source decided.
///
/// `ask_gpus` comes from needs_gpus(): the driver is opened only for a request that depends on it.
/// \throws std::system_error  the host's name or CPUs cannot be read.
Allocation detect_allocation(bool ask_gpus, const Environment& environment);

}  // namespace lrun
