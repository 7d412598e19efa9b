#pragma once

#include <sys/types.h>

#include <vector>

#include "runtime/collectives/bootstrap/group_options.h"
#include "runtime/collectives/bootstrap/peer_watch.h"
#include "runtime/collectives/shm/region.h"
#include "runtime/collectives/shm/shared_memory.h"

namespace lrun::detail {

/// The memory that the ranks of one host share, and their processes.
struct ShmSetup {
  SharedMemory memory;
  ShmRegion region;
  std::vector<pid_t> pids;  ///< Of every rank, in its own pid namespace: for messages.
  PeerWatch watch;          ///< Of the others; uses `memory`, which has to stay open.
};

/// Meets the other ranks in the store and opens memory that all of them share. Collective.
///
/// Rank 0 makes a memfd, which the others open as /proc/<pid>/fd/<n>; nothing is left behind, whichever process is
/// killed. If that is refused (another pid namespace, another user, hidepid), rank 0 makes a file in /dev/shm and
/// unlinks it as soon as all have opened it, or have failed to. Only a signal that ends rank 0 in between leaves it
/// there.
///
/// \throws Unsupported        the ranks are on several hosts; the text says what to use there.
/// \throws CollectiveTimeout  not all ranks came within the timeout.
/// \throws PeerLost           a rank ended after all had come.
/// \throws Error              no memory can be shared, or ranks with different versions of liblrun; equal on all ranks.
ShmSetup meet_and_share(const GroupOptions& options);

}  // namespace lrun::detail
