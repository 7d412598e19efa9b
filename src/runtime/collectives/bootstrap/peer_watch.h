#pragma once

#include <sys/types.h>

#include <span>
#include <vector>

#include "base/fd.h"

namespace lrun::detail {

/// Detects which peers have ended, without being their parent: a pidfd becomes readable when its process ends, even
/// before that process is reaped. A peer without a pidfd (in another pid namespace, or where the call is refused) may
/// be watched by a lock that the kernel releases when the process ends.
///
/// Threads  ended() on any, while nothing is added.
class PeerWatch {
 public:
  PeerWatch() = default;
  /// pids[r] is rank r's process as seen from here, or 0 for one that cannot be watched (another pid namespace).
  /// Construct it as soon as the pids are known: a peer that has ended by then counts as ended, unless an unrelated
  /// process has got its pid. \throws std::system_error  no descriptors or no memory left.
  explicit PeerWatch(std::span<const pid_t> pids);

  /// From now on `pid` is rank's process, as above.
  void add(int rank, pid_t pid);

  /// From now on a rank without a pidfd counts as ended once its process no longer holds its lock: that of the byte
  /// `rank` of `file`. The process holds the lock now, and the file must stay open here as long as ended() is called.
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
