#pragma once

#include <lrun/export.h>

namespace lrun {

/// The version of the loaded liblrun as "major.minor.patch", as `lrun --version` prints it.
[[nodiscard]] LRUN_EXPORT const char* version() noexcept;

}  // namespace lrun
