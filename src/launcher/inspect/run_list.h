#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::launcher {

/// A run that left a folder.
struct RunEntry {
  std::string id;
  std::filesystem::path folder;
  bool alive = false;     ///< its launcher holds the lock
  std::string name = {};  ///< of its job, as --rdzv-id said; empty: no other than the id

  bool operator==(const RunEntry&) const = default;
};

/// The run of a folder that is one (is_run).
RunEntry run_entry(const std::filesystem::path& folder);

/// All runs in the state folder, oldest first. A folder without a lock of ours is no run; a state folder that is not
/// there holds none.
std::vector<RunEntry> list_runs(const std::filesystem::path& state_folder);

/// Those that `name` may mean: the run of that id, else those whose job is called so, else those whose id begins or
/// ends with it or whose job's name begins with it. Pure.
std::vector<RunEntry> runs_named(const std::vector<RunEntry>& runs, std::string_view name);

}  // namespace lrun::launcher
