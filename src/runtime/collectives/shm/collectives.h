#pragma once

#include <memory>

#include "runtime/collectives/bootstrap/group_options.h"
#include "runtime/collectives/common/posted_collectives.h"

namespace lrun::detail {

/// Collectives named 'shm', of processes on one host; see ShmOperations and ShmSetup. Collective.
/// A process that a rank forks cannot use the group: its copy throws lrun::Error, and ends without the others' notice.
/// \throws what meet_and_share() throws.
std::unique_ptr<PostedCollectives> make_shm(const GroupOptions& options);

}  // namespace lrun::detail
