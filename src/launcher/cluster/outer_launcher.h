#pragma once

#include "base/environment.h"

namespace lrun::launcher {

/// True in a worker of another launcher. Such a worker also inherits the variables of the manager that started that
/// launcher, which do not describe this run.
inline bool is_worker(const Environment& environment) {
  return environment.has("LRUN_RUN_ID") || environment.has("TORCHELASTIC_RUN_ID");
}

}  // namespace lrun::launcher
