#pragma once

#include <cstdint>
#include <string>

#include "base/duration.h"

namespace lrun::launcher {

struct PortOwner {
  bool is_rendezvous = false;  ///< of launchers, of this job or another
  std::string who = {};        ///< as a clause: 'other launchers use it'; empty: unknown
};

/// Finds out which program listens at a port that this launcher needs: begins a handshake as a launcher does and waits
/// for the answer, at most for `limit`.
/// \param address  numeric
/// \param secret   that the launchers of our job share; empty: none
PortOwner owner_of_port(const std::string& address, std::uint16_t port, const std::string& secret, Duration limit);

}  // namespace lrun::launcher
