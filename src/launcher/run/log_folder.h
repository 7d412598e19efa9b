#pragma once

#include <filesystem>
#include <string>

#include "base/environment.h"
#include "base/folder.h"
#include "plan/launch_plan.h"

namespace lrun::launcher {

/// The name of this launcher's part of the run's folder: its host, or 'rank_3'. Empty: the run has no other launcher,
/// and no head.
std::string part_of(const LaunchPlan& plan);

/// Where a run's log files and error files are.
///
/// lrun: the run directory, or `<--log-dir>/<run id>`, in a job of several launchers `<run id>/<part>`. torchrun:
/// `<base>/<--rdzv-id or none>_<8 letters>`, where the base is --log-dir or a new folder `torchelastic_<8 letters>`
/// below TMPDIR. Nothing is made before make().
class LogFolder {
 public:
  LogFolder(const LaunchPlan& plan, const Environment& environment);

  /// The files are in the run directory.
  [[nodiscard]] bool is_run_directory() const { return files_ && base_.empty(); }

  /// Makes it; harmless when called again, and then makes what somebody has removed.
  /// \param run_directory  the folder where no other place was named; may be nullptr
  /// \throws std::system_error  it cannot be made.
  void make(const Folder* run_directory);

  /// The folder that all attempts' files are in; none before make(), and where the run has no files.
  [[nodiscard]] const Folder* folder() const { return folder_; }

  /// Removes what make() made, if it is empty.
  void remove_when_unused() const;
  /// The folder is a new one below TMPDIR, which the user did not ask for.
  [[nodiscard]] bool is_temporary() const { return !new_base_.empty(); }

 private:
  bool files_;
  std::filesystem::path base_;  ///< where a folder is to be made; empty: the run directory has the files
  std::string new_base_;        ///< a folder of our own in it, and the files' folder in that; empty: none
  std::string name_;
  std::string part_;  ///< of the run that is this launcher's; empty: it has the whole folder
  Folder made_in_;
  Folder made_;
  const Folder* folder_ = nullptr;
};

}  // namespace lrun::launcher
