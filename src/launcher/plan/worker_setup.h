#pragma once

#include <string>
#include <vector>

#include "plan/environment_change.h"
#include "plan/resource_limit.h"
#include "plan/setting.h"
#include "plan/wrapper.h"

namespace lrun::launcher {

/// The changes to every worker before its program begins. A value.
struct WorkerSetup {
  Setting<std::string> folder;                 ///< --chdir; empty: where lrun was started
  std::vector<EnvironmentChange> environment;  ///< --env, --unset: at most one per name
  std::vector<ResourceLimit> limits;           ///< --rlimit: at most one per resource
  bool core_dumps = false;                     ///< --core
  std::vector<Wrapper> wrappers;               ///< --wrap, --wrap@RANKS; later ones win
  Setting<std::string> preload;                ///< --preload: Python modules that a fork server imports; empty: none
  Setting<int> debug_rank{-1};                 ///< --debug-rank: runs below a debugger, with lrun's terminal; -1: none

  bool operator==(const WorkerSetup&) const = default;
};

}  // namespace lrun::launcher
