#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::launcher {

/// A run that left a folder.
struct RunEntry {
  std::string id;
  std::filesystem::path folder;
  std::vector<std::filesystem::path> parts = {};  ///< of its launchers, as parts_of_run(); never empty
  bool alive = false;                             ///< one of them holds its lock
  std::string name = {};                          ///< of its job (--rdzv-id); empty: the id alone names it
  bool waits = false;                  ///< nothing has begun: all of `parts` wait for their job, or their hosts
  std::vector<std::string> jobs = {};  ///< as slurm_job_names(); empty: it has no job of Slurm

  /// To be shown; may be empty.
  [[nodiscard]] std::string job() const { return jobs.empty() ? std::string() : jobs.front(); }

  bool operator==(const RunEntry&) const = default;
};

/// The run that left this folder, or of which it is a part. Empty: none did.
std::optional<RunEntry> run_in(const std::filesystem::path& folder);

/// All runs in the state folder, oldest first. A folder without a lock of ours is no run. Empty where there is no state
/// folder.
std::vector<RunEntry> list_runs(const std::filesystem::path& state_folder);

/// Launchers that wait for their job, by the run that each would be: nothing has begun there, so it is no run yet.
std::vector<RunEntry> list_waiting(const std::filesystem::path& state_folder);

/// Both, oldest first. A launcher that comes late to a job that runs is one of its parts.
std::vector<RunEntry> list_all(const std::filesystem::path& state_folder);

/// `name` is that of the run's Slurm job, of its step, or of an array with that job: '31', '31.0', '30_2', '30', each
/// also with 'slurm-' before it. Pure.
bool is_of_job(const RunEntry& run, std::string_view name);

/// True of runs of one job: they have its name, or where they have none their Slurm job is the same. Pure.
bool are_of_one_job(const RunEntry& one, const RunEntry& other);

/// The runs that `name` may mean: the run of that id, otherwise those whose job has that name or number, otherwise
/// those whose id begins or ends with it or whose job's name begins with it. Pure.
std::vector<RunEntry> runs_named(const std::vector<RunEntry>& runs, std::string_view name);

}  // namespace lrun::launcher
