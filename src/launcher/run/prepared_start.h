#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/environment.h"
#include "plan/launch_plan.h"
#include "process/process_limits.h"
#include "process/program_path.h"
#include "process/spawn.h"

namespace lrun::launcher {

/// The program, folder, environment and limits of every worker, found before anything is started. A value.
struct PreparedStart {
  ProgramPath executable;   ///< plan.argv[0]; its path is as seen from `folder`
  std::string folder;       ///< absolute; empty: lrun's own
  Environment environment;  ///< lrun's own, with the user's changes
  std::vector<ProcessLimit> limits;
  SpawnDefaults defaults;
  std::map<std::string, std::string> wrapper_paths;  ///< by name: what is executed in front of the program

  /// Some worker executes the program itself.
  bool runs_program = true;

  /// `path`, which may be relative to `folder`, as seen from where lrun runs.
  [[nodiscard]] std::string from_here(const std::string& path) const;
};

/// To be called before lrun changes its own limits and signals. A program that cannot be executed is no exception: see
/// `executable`.
/// \throws UserError  the folder is not there, a limit may not be set, a wrapper cannot be executed, rank 0 is to read
///                    a terminal that is not lrun's.
PreparedStart prepare_start(const LaunchPlan& plan, const Environment& environment);

}  // namespace lrun::launcher
