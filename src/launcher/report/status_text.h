#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/run_status.h"

namespace lrun::launcher {

/// The text of `lrun status` about one run: a line about the run, then a line for each rank with what it uses of GPUs
/// and its last printed line. Ranks with the same status share a line.
/// \param now_ms  since the epoch: for a launcher that does not report how long it runs
std::string status_text(const RunStatus& status, std::int64_t now_ms);

/// The same of many launchers for programs: `schema` 1, 'runs', 'silent' with the ids of runs of which one did not
/// answer, and 'elsewhere' with the names of those on other hosts, by run.
std::string status_json(const std::vector<RunStatus>& runs, const std::set<std::string>& silent,
                        const std::map<std::string, std::vector<std::string>>& elsewhere);

/// argv to be shown: as a shell would read it, but on one line and at most `most` bytes.
std::string command_text(const std::vector<std::string>& argv, std::size_t most);

}  // namespace lrun::launcher
