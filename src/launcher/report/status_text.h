#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/run_status.h"
#include "report/rank_table.h"

namespace lrun::launcher {

/// Launchers of a run on one host, of which each may have one rank, as one with the workers of all, where all are in
/// the same state.
std::vector<RunStatus> with_hosts_joined(const std::vector<RunStatus>& launchers);

/// 'running', 'waiting for other nodes to start again'
std::string phase_text(const RunStatus& status);

/// The text of `lrun status` about one run: a line about the run, then a table of its ranks. Where more than 20 are not
/// alike, those that differ in numbers only share a line.
/// \param now_ms  since the epoch: for a launcher that does not report how long it runs
std::string status_text(const RunStatus& status, std::int64_t now_ms, RankFold fold = RankFold::kAlike);

/// The same of many launchers for programs: `schema` 1, 'runs', 'silent' with the ids of runs of which one did not
/// answer, and 'elsewhere' with the names of those on other hosts, by run.
/// \param ended  not nullptr: one look of many, on one line, with the results of runs that have ended since the last
/// one
std::string status_json(const std::vector<RunStatus>& runs, const std::set<std::string>& silent,
                        const std::map<std::string, std::vector<std::string>>& elsewhere,
                        const std::map<std::string, std::string>* ended = nullptr);

/// argv to be shown: as a shell would read it, but on one line and at most `most` bytes and '…'. Where it is longer,
/// Python and folders are left out first: 'train.py --lr 1'. Without secrets.
std::string command_text(const std::vector<std::string>& argv, std::size_t most);

}  // namespace lrun::launcher
