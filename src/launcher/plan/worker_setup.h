#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/environment_change.h"
#include "plan/resource_limit.h"
#include "plan/setting.h"
#include "plan/wrapper.h"

namespace lrun::launcher {

/// How much the files in a run's folder in memory may hold before there is a warning.
struct MemoryLimit {
  std::optional<std::uint64_t> bytes;  ///< 0: there is no such folder; empty: a quarter of what is free

  [[nodiscard]] bool has_folder() const { return bytes != 0; }
  bool operator==(const MemoryLimit&) const = default;
};

/// The changes to every worker before its program begins. A value.
struct WorkerSetup {
  Setting<std::string> folder;                 ///< --chdir; empty: where lrun was started
  std::vector<EnvironmentChange> environment;  ///< --env, --unset: at most one per name
  std::vector<ResourceLimit> limits;           ///< --rlimit: at most one per resource
  bool core_dumps = false;                     ///< --core
  std::vector<Wrapper> wrappers;               ///< --wrap, --wrap@RANKS; later ones win
  Setting<std::string> preload;                ///< --preload: Python modules that a fork server imports; empty: none
  Setting<MemoryLimit> memory;                 ///< --memory-dir: of what workers keep in the run's folder in memory
  Setting<int> debug_rank{-1};                 ///< --debug-rank: runs below a debugger, with lrun's terminal; -1: none

  bool operator==(const WorkerSetup&) const = default;
};

}  // namespace lrun::launcher
