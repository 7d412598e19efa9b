#include "runtime/collectives/peer_watch.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace lrun {

PeerWatch::PeerWatch(std::span<const pid_t> pids) {
  for (pid_t pid : pids) {
    // CLOEXEC by itself. A kernel or sandbox without it leaves the peer unwatched: the deadline remains.
    pidfds_.emplace_back(pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1);
  }
}

std::vector<int> PeerWatch::ended(std::span<const int> candidates) const {
  std::vector<pollfd> polled;
  for (int rank : candidates) {
    const auto index = static_cast<std::size_t>(rank);
    polled.push_back({index < pidfds_.size() ? pidfds_[index].get() : -1, POLLIN, 0});  // poll() skips -1
  }
  std::vector<int> ranks;
  if (::poll(polled.data(), polled.size(), 0) <= 0) return ranks;
  for (std::size_t i = 0; i < polled.size(); ++i) {
    if ((polled[i].revents & POLLIN) != 0) ranks.push_back(candidates[i]);
  }
  return ranks;
}

}  // namespace lrun
