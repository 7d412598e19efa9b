#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "cli/flags.h"

namespace lrun::launcher {

/// The value that variables give to a flag, if any: LRUN_<FLAG> before PET_<DEST>. LRUN_<FLAG> counts only outside of
/// a run (without LRUN_RUN_ID), so that a nested lrun does not inherit its parent's plan, and not when it is empty.
std::vector<GivenValue> values_from_environment(const Environment& environment);

/// One line for each LRUN_ variable that is neither a flag's nor part of the contract.
std::vector<std::string> warn_about_unknown_variables(const Environment& environment);

}  // namespace lrun::launcher
