#pragma once

#include <string>

#include "cli/flags.h"

namespace lrun::launcher {

/// The value of --devices in its one spelling: '8', '2,3', '2,' (only device 2), 'auto' or '-1'; a list may hold UUIDs
/// such as 'GPU-1c2d...'. Spaces, quotes inside and empty fields of a list are taken away.
/// \throws UserError  anything else: zero, other negative numbers, a device named twice, letters.
std::string parse_device_argument(const GivenValue& given);

}  // namespace lrun::launcher
