#pragma once

#include <memory>

#include "runtime/collectives/bootstrap/group_options.h"
#include "runtime/collectives/common/posted_collectives.h"

namespace lrun::detail {

/// Collectives named 'gloo', of processes on any hosts, over TCP; see GlooOperations and GlooChannel. Collective.
///
/// Each rank is reached at the address of the interface through which it reaches the store. If that is the loopback and
/// other ranks are on other hosts: at that of the interface towards them. No name is looked up. A process that a rank
/// forks cannot use the group: its copy throws lrun::Error, and ends without the others' notice.
/// \throws Unsupported        this build has no gloo.
/// \throws CollectiveTimeout  not all ranks came, or connected, within the timeout.
/// \throws PeerLost           a rank ended meanwhile.
/// \throws Error              ranks with different versions of liblrun, or no address at which others reach this one.
std::unique_ptr<PostedCollectives> make_gloo(const GroupOptions& options);

}  // namespace lrun::detail
