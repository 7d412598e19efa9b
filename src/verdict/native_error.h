#pragma once

#include <optional>
#include <string>
#include <vector>

#include "verdict/python_traceback.h"

namespace lrun {

/// The last error in `lines` that a compiled program or the C library reports: an uncaught exception with its what(), a
/// failed assertion, a sanitizer's finding, corrupted memory, a panic, a library that the loader lacks. Pure.
std::optional<FoundError> find_native_error(const std::vector<std::string>& lines);

}  // namespace lrun
