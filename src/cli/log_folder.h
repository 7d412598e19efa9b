#pragma once

#include <filesystem>

#include "base/environment.h"
#include "plan/launch_plan.h"

namespace lrun {

/// Where a run's log files and error files are.
///
/// lrun: the run directory, or `<--log-dir>/<run id>`. torchrun: `<base>/<--rdzv-id or none>_<8 letters>`, where the
/// base is --log-dir or a new folder `torchelastic_<8 letters>` below TMPDIR. A value; nothing is made before make().
class LogFolder {
 public:
  /// \param run_folder  of this run, made elsewhere.
  LogFolder(const LaunchPlan& plan, const Environment& environment, const std::filesystem::path& run_folder);

  /// The files are in `folder` or below it.
  [[nodiscard]] bool is_below(const std::filesystem::path& folder) const;

  /// The folder of an attempt's files; empty: the run has none.
  /// \param again  how often an attempt with this number was started before, as after a change of nodes
  [[nodiscard]] std::filesystem::path attempt(int number, int again) const;

  /// Makes the base where it is a new one, for its owner only. Harmless when called again.
  /// \throws std::system_error  it cannot be made.
  void make() const;

  /// Removes a new base in which nobody left a file.
  void remove_when_unused() const;

 private:
  std::filesystem::path folder_;
  std::filesystem::path temporary_;  ///< a new base of our own; empty: the user's or the run's
};

}  // namespace lrun
