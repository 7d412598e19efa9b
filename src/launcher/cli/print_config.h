#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"

namespace lrun::launcher {

/// Every setting with its value and, behind a '#', where the value comes from, as a TOML text that --config reads
/// again. What nobody gave is a comment with its default.
/// \param values  what counts, as decided by the parser.
std::string config_text(const std::vector<GivenValue>& values);

}  // namespace lrun::launcher
