#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "cluster/user_hosts.h"
#include "inspect/machine_facts.h"

namespace lrun::launcher {

/// Reads the facts of this machine: in a moment when it is healthy, and in some thirty seconds at most, whatever hangs.
/// Changes nothing, and opens no GPU for computing. `hosts` are tried over TCP, and those that are not this machine
/// with `ssh`, the words of the user's. One thread: drivers and name services are asked in forked children. \throws
/// std::system_error  the host's name or CPUs cannot be read.
MachineFacts read_machine(const std::vector<Host>& hosts, const std::vector<std::string>& ssh,
                          const PythonChoice& python, const Environment& environment);

}  // namespace lrun::launcher
