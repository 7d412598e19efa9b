#pragma once

#include <string>

#include "plan/rendezvous_plan.h"
#include "store/listening_socket.h"

namespace lrun::launcher {

/// From where the rendezvous and the workers' store on this node can be reached. An endpoint on the loopback interface
/// means this machine only, unless '--local-addr' gives the others another address of the node.
StoreReach reach_of(const RendezvousPlan& plan);

/// The only address at which they listen, numeric, so that two jobs can use one port at two addresses. Empty: as
/// reach_of() says. Only an endpoint on the loopback interface gives one: any other address may be one of several that
/// this machine has, or be translated on the way.
std::string bind_address_of(const RendezvousPlan& plan);

}  // namespace lrun::launcher
