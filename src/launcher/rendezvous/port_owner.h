#pragma once

#include <cstdint>
#include <string>

#include "base/duration.h"

namespace lrun::launcher {

struct PortOwner {
  bool is_meeting = false;  ///< of launchers, of this job or another
  std::string who = {};     ///< as a clause: 'other launchers meet there'; empty: nobody said who
};

/// Who listens at a port that this launcher was to have. Greets it as a launcher would and waits for its answer, at
/// most for `limit`; takes part in nothing.
/// \param address  numeric
/// \param secret   that the launchers of our job share; empty: none
PortOwner owner_of_port(const std::string& address, std::uint16_t port, const std::string& secret, Duration limit);

}  // namespace lrun::launcher
