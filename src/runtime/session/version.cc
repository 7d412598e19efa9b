#include <lrun/version.h>

#include "lrun_version.h"

namespace lrun {

const char* version() noexcept { return LRUN_VERSION; }

}  // namespace lrun
