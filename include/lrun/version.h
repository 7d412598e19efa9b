#pragma once

#include <lrun/export.h>

namespace lrun {

/// The version of the liblrun that is loaded, as "major.minor.patch": the one `lrun --version` names.
[[nodiscard]] LRUN_EXPORT const char* version() noexcept;

}  // namespace lrun
