#pragma once

#include <cstddef>
#include <span>

#include "base/fd.h"

namespace lrun::inline core {

inline constexpr std::size_t kMostSentDescriptors = 8;

/// Sends one byte with copies of these descriptors, kMostSentDescriptors at most, through a socket between processes.
/// Never blocks. \return false on failure: none was sent.
[[nodiscard]] bool send_descriptors(int socket, std::span<const int> fds);

/// Passes descriptors from one of two related processes to the other, which keeps the last one. Made before the fork.
/// Never blocks.
class DescriptorChannel {
 public:
  /// \throws std::system_error  no descriptors are left.
  DescriptorChannel();

  /// Gives the other end a copy of `fd` in the place of the one before; -1: none. \return false on failure: the other
  /// end keeps the one before.
  [[nodiscard]] bool send(int fd) const;

  /// `kept` becomes the descriptor that was sent last. It stays as it is where nothing was sent.
  void receive(Fd& kept) const;

 private:
  Fd sender_;
  Fd receiver_;
};

}  // namespace lrun::inline core
