#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "inspect/machine_facts.h"

namespace lrun::launcher {

/// Looks at this machine: a moment when it is healthy, and never longer than some ten seconds, whatever hangs. Nothing
/// is changed and no GPU is opened for computing. `hosts` are tried over TCP. One thread: questions to drivers and name
/// services are asked in forked children.
/// \throws std::system_error  the host's name or CPUs cannot be read.
MachineFacts read_machine(const std::vector<std::string>& hosts, const Environment& environment);

}  // namespace lrun::launcher
