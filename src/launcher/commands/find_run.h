#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/duration.h"
#include "inspect/run_list.h"
#include "inspect/run_status.h"
#include "report/timeline.h"

namespace lrun::launcher {

/// The run that the user named: by its id, by how its id begins or ends, by the name of its job (--rdzv-id) or how that
/// begins, or by its folder. With an empty name the newest one. It may be one that waits to begin.
/// \throws UserError  there is none, or several.
RunEntry run_named(const std::string& name, const std::filesystem::path& state_folder);

/// The same, but of several runs of one job the newest one that has started workers.
RunEntry run_of_job_named(const std::string& name, const std::filesystem::path& state_folder);

/// As run_named(), of a run that must be alive: of several that are meant the only one that is; with an empty name the
/// only one of all, before those that wait to begin. \param command  for the hint: 'lrun stack'
/// \throws UserError  no run is meant, or several are, or it has ended.
RunEntry living_run(const std::string& name, const std::filesystem::path& state_folder, const std::string& command);

/// That run, or with an empty name all that are alive.
std::vector<RunEntry> living_runs(const std::string& name, const std::filesystem::path& state_folder);

/// The answer of a verb about the ranks of a run that waits to begin: lines that say for what it waits.
std::string text_of_waiting(const RunEntry& run);

/// A launcher that is alive, and its answer to the question for its status.
struct LivingLauncher {
  std::filesystem::path folder;
  std::optional<RunStatus> status;  ///< empty: it is elsewhere, or gave none within two seconds
  bool is_elsewhere = false;        ///< on another host that shares the file system
};
std::vector<LivingLauncher> ask_launchers(const RunEntry& run);

/// The one that can ask all of the job: a launcher with others, or a head. nullptr: none is there.
const LivingLauncher* speaker_of(const std::vector<LivingLauncher>& launchers);
/// Lines of JSON of all launchers of its job that answer in time. \param words  as JobAnswers::ask() has them
std::vector<std::string> ask_job(const LivingLauncher& launcher, std::string_view words, Duration limit);
/// The launchers of the same job that these have not answered for: one of these asks them.
std::vector<RunStatus> ask_others(const std::vector<LivingLauncher>& launchers);

/// True of mpirun's or srun's run with a launcher for each rank: none of them alone can do it again.
bool has_launcher_for_each_rank(const RunEntry& run);

/// The files that the launchers of a run have written.
struct RunFiles {
  std::optional<Timeline> timeline;   ///< the course of the run, as their events tell it; empty: they left none
  std::optional<std::string> result;  ///< result.json of deciding_part(); empty: there is none, or the run goes on
};
RunFiles read_run(const RunEntry& run);
/// Its timeline. \throws UserError  there is none.
Timeline timeline_in(RunFiles files, const RunEntry& run);
/// The timelines of its job: the runs that are kept, oldest first, one after the other, up to the one that succeeded.
/// Runs beside another one of the same name are left out. `timeline` is that of `run`.
std::vector<Timeline> timelines_of_job(const RunEntry& run, Timeline timeline,
                                       const std::filesystem::path& state_folder);
inline Timeline timeline_of(const RunEntry& run) { return timeline_in(read_run(run), run); }

}  // namespace lrun::launcher
