#pragma once

#include <vector>

#include "base/environment.h"
#include "cluster/allocation.h"
#include "cluster/user_hosts.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// The hosts that the user names, less those that --include and --exclude leave out; empty: none are named. Reads the
/// hostfile.
/// \throws UserError  they cannot be read; options or a cluster's manager contradict each other.
std::vector<Host> named_hosts(const LaunchRequest& request, const Environment& environment);

/// Where no hosts are named: the devices that --include or --exclude select of this one, as in 'localhost:0,2', go into
/// the only node of `allocation`.
/// \throws UserError  the selection contradicts another option, or names a device that is not there.
void select_devices_here(const LaunchRequest& request, Allocation& allocation);

/// Which of the hosts are this machine and need no ssh.
std::vector<bool> which_are_here(const std::vector<Host>& hosts);

}  // namespace lrun::launcher
