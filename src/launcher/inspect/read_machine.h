#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "inspect/machine_facts.h"

namespace lrun::launcher {

/// Reads the facts of this machine: in a moment when it is healthy, and in some ten seconds at most, whatever hangs.
/// Changes nothing, and opens no GPU for computing. `hosts` are tried over TCP. One thread: drivers and name services
/// are asked in forked children. \throws std::system_error  the host's name or CPUs cannot be read.
MachineFacts read_machine(const std::vector<std::string>& hosts, const Environment& environment);

}  // namespace lrun::launcher
