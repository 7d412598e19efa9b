#pragma once

#include <lrun/collectives.h>
#include <lrun/export.h>

#include <chrono>
#include <memory>
#include <vector>

namespace lrun {

/// How long the ranks of a thread group wait for each other.
struct ThreadGroupOptions {
  std::chrono::milliseconds timeout =
      std::chrono::minutes(30);  ///< Of every operation; more than 0, at most ten years.
};

/// Collectives named 'threads', whose ranks are threads of this process. Element r belongs to rank r and may move to
/// any thread. The last rank to call an operation performs it, in rank order and with the arithmetic of 'shm'.
///
/// Destroying one rank's element while others wait for its call ends their wait with PeerLost.
/// \throws std::invalid_argument  `world_size` or the timeout is not positive.
LRUN_EXPORT std::vector<std::unique_ptr<Collectives>> make_thread_group(int world_size,
                                                                        const ThreadGroupOptions& options = {});

}  // namespace lrun
