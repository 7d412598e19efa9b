#pragma once

#include "base/environment.h"

namespace lrun::launcher {

/// True of a worker of another launcher: it has that one's variables and, inherited, those of what started it.
inline bool is_worker(const Environment& environment) {
  return environment.has("LRUN_RUN_ID") || environment.has("TORCHELASTIC_RUN_ID");
}

}  // namespace lrun::launcher
