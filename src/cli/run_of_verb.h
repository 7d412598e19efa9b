#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "inspect/run_list.h"

namespace lrun {

/// The run that the user named: by its id, by how its id begins or ends, or by its folder.
/// \throws UserError  there is none, or several.
RunEntry run_named(const std::string& name, const std::filesystem::path& state_folder);

}  // namespace lrun
