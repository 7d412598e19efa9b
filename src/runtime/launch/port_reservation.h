#pragma once

#include <cstdint>

#include "base/fd.h"

namespace lrun::detail {

/// A port that the kernel gives to no other process while this lives: bound, but not listened on. The store of a
/// launch, which binds it with SO_REUSEADDR, can still have it.
class PortReservation {
 public:
  /// \throws std::system_error  no socket, no port.
  PortReservation();

  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  Fd socket_;
  std::uint16_t port_ = 0;
};

}  // namespace lrun::detail
