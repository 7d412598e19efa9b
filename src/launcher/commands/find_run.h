#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "inspect/run_list.h"
#include "report/timeline.h"

namespace lrun::launcher {

/// The run that the user named: by its id, by how its id begins or ends, by the name of its job (--rdzv-id) or how that
/// begins, or by its folder. With an empty name the newest one.
/// \throws UserError  there is none, or several.
RunEntry run_named(const std::string& name, const std::filesystem::path& state_folder);

/// The same of a run that must be alive: of several that are meant the only one that is; with an empty name the only
/// one of all. \param command  for the hint: 'lrun stack' \throws UserError  there is none, there are several, or it
/// has ended.
RunEntry living_run(const std::string& name, const std::filesystem::path& state_folder, const std::string& command);

/// That run, or with an empty name all that are alive.
std::vector<RunEntry> living_runs(const std::string& name, const std::filesystem::path& state_folder);

/// The result.json of a run; in a job of several launchers all tell the same. Empty: there is none.
std::optional<std::string> find_result(const RunEntry& run);

/// The course of a run, as the events of its launchers tell it. Empty: they left none.
std::optional<Timeline> find_timeline(const RunEntry& run);
/// The same. \throws UserError  it left none.
Timeline timeline_of(const RunEntry& run);

}  // namespace lrun::launcher
