#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "base/environment.h"
#include "base/folder.h"
#include "inspect/run_directory.h"
#include "plan/launch_plan.h"
#include "run/log_folder.h"

namespace lrun::launcher {

/// How many runs a user keeps, and with how many more the oldest are removed.
inline constexpr std::size_t kRunsKept = 50;
inline constexpr std::size_t kRunsTolerated = 100;

/// The folder of a run in the state folder.
std::filesystem::path folder_of_run(const LaunchPlan& plan, const Environment& environment);

/// The names under which others find it, as RunDirectory has them.
std::string names_of_run(const LaunchPlan& plan, const Environment& environment);

/// The folders of a run's record and log files. They are made before the workers, which get no names of missing
/// folders. A run goes on without them.
class RunFolders {
 public:
  /// \param part  of the run that is this lrun's; empty: part_of()
  RunFolders(const LaunchPlan& plan, const Environment& environment, const std::string& part = {});

  /// The run directory was removed. Close all files in it before forget_run().
  [[nodiscard]] bool is_run_removed() const;
  void forget_run() { run_.reset(); }

  /// Makes the folders that are missing; harmless when called again, and then makes removed ones again.
  /// \param has_to_log  without a folder for log files there can be no run
  /// \return a warning about what is not kept, and why; empty: nothing is wrong, or it was returned before.
  /// \throws std::system_error  the folder for log files cannot be made, and `has_to_log`.
  std::string make(bool has_to_log);

  /// Call it when the workers run: others may see the run from then on. Throws as RunDirectory::begin().
  void begin();

  /// The run directory; nullptr: there is none.
  [[nodiscard]] const Folder* run() const { return run_ ? &run_->folder() : nullptr; }
  /// Whether workers may be given the names of files in logs(): another user could make a name lead to a file that only
  /// the workers' user can write (Folder::may_be_replaced()).
  [[nodiscard]] bool may_name_files() const { return logs() == nullptr || !logs()->may_be_replaced(); }
  /// The folder for log files; nullptr: there is none. Stays where it is in memory.
  [[nodiscard]] const Folder* logs() const { return logs_.folder(); }

  /// As RunDirectory::prune_others().
  void prune_others(std::size_t kept, std::size_t tolerated) const;
  /// Call it when the run is over: removes a temporary folder for log files, if it is empty.
  void remove_unused_logs() const {
    if (logs_.is_temporary()) logs_.remove_when_unused();
  }
  /// Removes the folders of a run that did not begin.
  void remove();

 private:
  std::filesystem::path path_;
  std::string part_;  ///< of the run that is this launcher's; empty: it is the only one
  std::string names_;
  const char* log_option_;
  std::optional<RunDirectory> run_;
  LogFolder logs_;
  bool told_ = false;
};

}  // namespace lrun::launcher
