#pragma once

#include <string>

#include "base/duration.h"

namespace lrun::launcher {

/// How long the name service may take.
inline constexpr Duration kNameServiceLimit(3000);

/// The address of a host that needs no name service: a numeric one, and 'localhost'; empty for any other name.
std::string known_address(const std::string& host);

/// A name's first numeric address, IPv4 before IPv6; empty when there is no such name. Asks the name service: for a
/// child process that has a deadline. \throws std::runtime_error  the name service does not know now.
std::string ask_for_address(const std::string& host);

/// A host name's first numeric address, IPv4 before IPv6; a numeric one as it is; empty when it cannot be resolved now.
/// The name service is asked in a child process with a deadline of three seconds, which the caller waits for.
std::string resolve_address(const std::string& host);

}  // namespace lrun::launcher
