#pragma once

#include "base/fd.h"

namespace lrun::inline core {

/// Passes descriptors from one of two related processes to the other, which keeps the last one. Made before the fork.
/// Never blocks.
class DescriptorChannel {
 public:
  /// \throws std::system_error  no descriptors are left.
  DescriptorChannel();

  /// Gives the other end a copy of `fd` in the place of the one before; -1: none. \return false when that cannot be:
  /// the other end has what it had.
  [[nodiscard]] bool send(int fd) const;

  /// `kept` becomes what was sent last; it stays where nothing was sent.
  void receive(Fd& kept) const;

 private:
  Fd sender_;
  Fd receiver_;
};

}  // namespace lrun::inline core
