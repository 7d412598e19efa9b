#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "remote/meeting_address.h"

namespace lrun::launcher {

/// The names of all `hosts` that are one machine with this one, its own included, in their order. Empty where it has no
/// other name, or does not say which machine it is. Pure.
std::vector<std::string> names_of_machine(const std::vector<ReachedHost>& hosts, std::size_t host);

}  // namespace lrun::launcher
