#pragma once

#include <sys/types.h>

#include <span>
#include <vector>

#include "base/fd.h"

namespace lrun::detail {

/// Tells which peers have ended, without being their parent: a pidfd turns readable when its process ends, also while
/// nobody has reaped it. Peers without one (in another pid namespace, or where the call is refused) may be known by a
/// lock that the kernel takes from them when they end.
///
/// Threads  ended() on any, while nothing is added.
class PeerWatch {
 public:
  PeerWatch() = default;
  /// pids[r] is rank r's process as seen from here, or 0 for one that cannot be watched (another pid namespace). Made
  /// as soon as the pids are known: a peer that has ended by then counts as ended unless its pid names a stranger
  /// again. \throws std::system_error  no descriptors or no memory left.
  explicit PeerWatch(std::span<const pid_t> pids);

  /// From now on `pid` is rank's process, as above.
  void add(int rank, pid_t pid);

  /// From now on rank's process counts as ended, unless it has a pidfd, once it does not hold its lock any more: that
  /// of the byte `rank` of `file`, which it holds now and which is open here as long as ended() is called.
  void watch_lock(int rank, int file);

  /// The ranks among `candidates` whose process has ended. Does not block.
  [[nodiscard]] std::vector<int> ended(std::span<const int> candidates) const;

 private:
  struct Peer {
    Fd pidfd;              // empty: not watched by it
    bool gone = false;     // before it could be watched
    int locked_file = -1;  // not ours; -1: not watched by its lock
  };

  std::vector<Peer> peers_;  // by rank
};

}  // namespace lrun::detail
