#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/fd.h"
#include "base/folder.h"

namespace lrun::launcher {

/// Where runs are kept: $LRUN_STATE, else $XDG_STATE_HOME/lrun, else ~/.local/state/lrun, else /tmp/lrun-<user id>.
std::filesystem::path state_folder(const Environment& environment);

/// The folder of one launcher, 0700: events.jsonl, result.json, control.sock and, unless --log-dir names another place,
/// the log files. The launcher of a run that is alone has the run's own folder. In a job of several launchers each has
/// a part of it, so that they may share the file system. Others see it from begin() on, and as a living one while its
/// lock is held. The lock is taken first, so that the folder of a launcher that is killed before begin() is removed
/// with old runs.
class RunDirectory {
 public:
  /// \param path  of the run; its parent is made, too, where it is missing
  /// \param part  the name of this launcher's part; 'part-2' where that is taken. Empty: the run has this one launcher
  /// \param names  for names_of(): the name of the job (--rdzv-id), which may be empty, and on lines of their own those
  /// that its cluster's manager has for it
  /// \throws std::system_error  the folder or its lock cannot be made, or others may change what is in its parent.
  explicit RunDirectory(const std::filesystem::path& path, const std::string& part = {}, std::string_view names = {});

  /// The run has begun, and answers through its control socket.
  /// \throws std::system_error  the lock cannot be renamed.
  void begin();

  [[nodiscard]] const Folder& folder() const { return folder_; }
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

  /// As prune_runs(), of the runs beside this one.
  void prune_others(std::size_t kept, std::size_t tolerated) const;

  /// Removes it with all that is in it: the run did not begin.
  void remove();

 private:
  [[noreturn]] void refuse_to_lock(int error) const;

  Folder state_;
  std::string run_;  ///< of which this is a part; empty: it is the run's own folder
  Folder folder_;
  Fd lock_;
};

/// A new folder in that of a run, for one launcher: 'part', or 'part-2' where that is taken, as launchers of one host
/// may have its name. The run's is made where it is missing. \throws std::system_error  they cannot be made.
Folder make_part(const Folder& parent, const std::string& run, const std::string& part);

/// The folders of the launchers of a run that have begun, by name: its own, or its parts. Empty of any other folder.
std::vector<std::filesystem::path> parts_of_run(const std::filesystem::path& run);

/// The folders in that of a run in which nothing has begun, and a launcher answers: it waits for its job, by name.
std::vector<std::filesystem::path> waiting_parts(const std::filesystem::path& run);

/// The names of the run's job: --rdzv-id, and then those that its cluster's manager has for it ('31.0'). The first is
/// empty where it has none, or it cannot be read.
std::vector<std::string> names_of(const std::filesystem::path& run_directory);

/// When the launcher made its folder, more exact than the run's id; the epoch when it is gone.
std::filesystem::file_time_type time_of_run(const std::filesystem::path& run_directory);

/// True when no living lrun holds the launcher's lock.
bool is_stale(const std::filesystem::path& run_directory);

/// Removes the oldest of this user's runs beyond `kept` when there are more than `tolerated`. Living runs are never
/// removed. Links, and files and folders that are no run or do not have the name of one, are neither counted nor
/// removed. Errors are ignored: the next run tries again.
void prune_runs(const Folder& state_folder, std::size_t kept, std::size_t tolerated);

}  // namespace lrun::launcher
