#pragma once

#include <string>
#include <vector>

#include "cluster/allocation.h"
#include "cluster/user_hosts.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// The user names the hosts of the run.
bool names_hosts(const LaunchRequest& request);

/// The option that names the hosts, for messages: '-H a:4,b:4', '--hostfile hosts'.
std::string hosts_as_written(const LaunchRequest& request);

/// The request with the number of nodes of `hosts`. Devices that the list gives host by host replace those of the
/// request. \throws UserError  an option contradicts the list, or cannot be combined with hosts
LaunchRequest placed_on_hosts(LaunchRequest request, const std::vector<Host>& hosts);

/// The devices of this host by the list of hosts; kNone: it says nothing of them.
DeviceRequest devices_of(const Host& host);

/// The option that says which devices this host uses, or how many.
std::string devices_origin_of(const LaunchRequest& request, const Host& host);

/// The nodes of such a run before any of them has answered. Each is taken to be like `here`, this host.
Allocation allocation_of_hosts(const LaunchRequest& request, const std::vector<Host>& hosts, const AllocatedNode& here);

}  // namespace lrun::launcher
