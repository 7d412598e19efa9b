#pragma once

#include <string>
#include <vector>

#include "plan/environment_change.h"
#include "plan/resource_limit.h"
#include "plan/setting.h"
#include "plan/wrapper.h"

namespace lrun::launcher {

/// What is done in every worker before its program begins, as asked. A value.
struct WorkerSetup {
  Setting<std::string> folder;                 ///< --chdir; empty: where lrun was started
  std::vector<EnvironmentChange> environment;  ///< --env, --unset: at most one for a name
  std::vector<ResourceLimit> limits;           ///< --rlimit: at most one for a resource
  bool core_dumps = false;                     ///< --core
  std::vector<Wrapper> wrappers;               ///< --wrap, --wrap@RANKS; later ones win
  Setting<int> debug_rank{-1};                 ///< --debug-rank: below a debugger, with lrun's terminal; -1: none

  bool operator==(const WorkerSetup&) const = default;
};

}  // namespace lrun::launcher
