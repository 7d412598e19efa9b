#pragma once

#include <sys/types.h>

#include <span>
#include <vector>

#include "base/fd.h"

namespace lrun {

/// Tells which peers have ended, without being their parent: a pidfd turns readable when its process ends, also while
/// nobody has reaped it.
///
/// Threads  ended() on one thread at a time.
class PeerWatch {
 public:
  PeerWatch() = default;
  /// pids[r] is rank r's process as seen from here, or 0 for one that cannot be watched (another pid namespace).
  /// The caller makes sure that the peers live until they are watched, so that no pid names a stranger.
  explicit PeerWatch(std::span<const pid_t> pids);

  /// The ranks among `candidates` whose process has ended. Does not block.
  [[nodiscard]] std::vector<int> ended(std::span<const int> candidates) const;

 private:
  std::vector<Fd> pidfds_;  // by rank; empty: not watched
};

}  // namespace lrun
