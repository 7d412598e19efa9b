#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"

namespace lrun::launcher {

/// Every setting with its value and, behind a '#', the source of the value, as a TOML text for --config. A setting that
/// was not given is a comment with its default.
/// \param values  the values that count, from the parser.
std::string config_text(const std::vector<GivenValue>& values);

}  // namespace lrun::launcher
