#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "cli/flags.h"

namespace lrun::launcher {

/// The values that variables give to flags, LRUN_<FLAG> before PET_<DEST>. An empty LRUN_<FLAG> is ignored. Inside a
/// run (with LRUN_RUN_ID) LRUN_ variables are ignored, so that a nested lrun does not inherit its parent's plan.
std::vector<GivenValue> values_from_environment(const Environment& environment);

/// One line for each LRUN_ variable that neither gives the value of a flag nor is part of the contract with workers.
std::vector<std::string> warn_about_unknown_variables(const Environment& environment);

}  // namespace lrun::launcher
