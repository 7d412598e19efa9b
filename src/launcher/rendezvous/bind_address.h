#pragma once

#include <string>

#include "plan/rendezvous_plan.h"
#include "store/listening_socket.h"

namespace lrun::launcher {

/// Who may connect to what of a job is on this node: its meeting and the workers' store. Nobody outside this machine
/// can be meant by an endpoint on the loopback interface, unless others are told that they reach the node elsewhere.
StoreReach reach_of(const RendezvousPlan& plan);

/// The only address on which all of that listens, so that two jobs can have one port at two addresses; numeric. Empty:
/// as reach_of() says. Only for an endpoint that is an address of the loopback interface: any other may be one of
/// several by which this machine is reached, or be translated on the way.
std::string bind_address_of(const RendezvousPlan& plan);

}  // namespace lrun::launcher
