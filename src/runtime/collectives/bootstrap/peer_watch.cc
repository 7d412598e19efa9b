#include "runtime/collectives/bootstrap/peer_watch.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>

#include "runtime/collectives/common/byte_lock.h"

namespace lrun::detail {

PeerWatch::PeerWatch(std::span<const pid_t> pids) {
  int rank = 0;
  for (pid_t pid : pids) add(rank++, pid);
}

void PeerWatch::add(int rank, pid_t pid) {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= peers_.size()) peers_.resize(index + 1);
  Peer& peer = peers_[index] = Peer();
  if (pid <= 0) return;
  peer.pidfd = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));  // CLOEXEC by itself
  if (peer.pidfd) return;
  peer.gone = errno == ESRCH;
  // A kernel or sandbox without the call leaves the peer unwatched: its lock may remain, else the deadline.
  if (peer.gone || errno == ENOSYS || errno == EPERM) return;
  throw std::system_error(errno, std::generic_category(), "watch process " + std::to_string(pid));
}

void PeerWatch::watch_lock(int rank, int file) {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= peers_.size()) peers_.resize(index + 1);
  if (!peers_[index].pidfd) peers_[index].locked_file = file;
}

std::vector<int> PeerWatch::ended(std::span<const int> candidates) const {
  static const Peer unknown;
  const auto peer_of = [this](int rank) -> const Peer& {
    const auto index = static_cast<std::size_t>(rank);
    return index < peers_.size() ? peers_[index] : unknown;
  };
  std::vector<pollfd> polled;
  for (int rank : candidates) polled.push_back({peer_of(rank).pidfd.get(), POLLIN, 0});  // poll() skips -1
  ::poll(polled.data(), polled.size(), 0);  // an error leaves all revents at 0: the next look sees it
  std::vector<int> ranks;
  for (std::size_t i = 0; i < polled.size(); ++i) {
    const Peer& peer = peer_of(candidates[i]);
    const bool lost_lock =
        peer.locked_file >= 0 && !is_byte_locked(peer.locked_file, static_cast<std::size_t>(candidates[i]));
    if (peer.gone || lost_lock || (polled[i].revents & POLLIN) != 0) ranks.push_back(candidates[i]);
  }
  return ranks;
}

}  // namespace lrun::detail
