#pragma once

#include <string>
#include <vector>

#include "cluster/allocation.h"
#include "cluster/user_hosts.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// True when the user says on which hosts the run is to be.
bool names_hosts(const LaunchRequest& request);

/// Where the hosts stand, for messages: '-H a:4,b:4', '--hostfile hosts'.
std::string hosts_as_written(const LaunchRequest& request);

/// The devices of a run on `hosts`, told host by host, and its number of nodes: what else the request says about them
/// has to agree.
/// \throws UserError  two options contradict each other, or one cannot be together with hosts.
LaunchRequest placed_on_hosts(LaunchRequest request, const std::vector<Host>& hosts);

/// What the list of hosts says of the devices of this one; kNone: nothing.
DeviceRequest devices_of(const Host& host);

/// Where it was said of this host which devices it uses, or how many.
std::string devices_origin_of(const LaunchRequest& request, const Host& host);

/// The nodes of such a run before any of them was asked: all are taken to be like this host.
/// \param here  this host
Allocation allocation_of_hosts(const LaunchRequest& request, const std::vector<Host>& hosts, const AllocatedNode& here);

}  // namespace lrun::launcher
