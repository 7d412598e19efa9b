#pragma once

#include <optional>
#include <string>

#include "base/environment.h"
#include "base/folder.h"
#include "inspect/run_directory.h"
#include "plan/launch_plan.h"
#include "run/log_folder.h"

namespace lrun::launcher {

/// Where a run keeps its record and its log files: made before the workers, which are told of no folder that is not
/// there. A run without them is still a run.
class RunFolders {
 public:
  RunFolders(const LaunchPlan& plan, const Environment& environment);

  /// Somebody has removed the run directory. What it was opened for has to be closed before forget_run().
  [[nodiscard]] bool is_run_removed() const;
  void forget_run() { run_.reset(); }

  /// Makes what is not there; harmless when called again. A folder for log files that somebody has removed is made
  /// again. \param has_to_log  without a folder for log files there can be no run \return what is not kept and why, for
  /// a warning, the first time; empty: nothing is amiss, or it was told. \throws std::system_error  the folder for log
  /// files cannot be made, and `has_to_log`.
  std::string make(bool has_to_log);

  /// The workers run: others may see the run. As RunDirectory::begin(), also in what it throws.
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
  /// The run is over: a temporary folder for log files goes, if nobody left a file in it.
  void remove_unused_logs() const {
    if (logs_.is_temporary()) logs_.remove_when_unused();
  }
  /// The run did not begin: nobody will ask for what is kept of it.
  void remove();

 private:
  std::filesystem::path path_;
  std::string run_name_;
  const char* log_option_;
  std::optional<RunDirectory> run_;
  LogFolder logs_;
  bool told_ = false;
};

}  // namespace lrun::launcher
