#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/environment.h"
#include "base/fd.h"
#include "base/folder.h"

namespace lrun::launcher {

/// Where runs are kept: $LRUN_STATE, else ~/.local/state/lrun, else /tmp/lrun-<user id>.
std::filesystem::path state_folder(const Environment& environment);

/// A new run's name: UTC time and random letters, so that names sort by age: '20261121-204530-x7k2q9'.
std::string make_run_id();

/// True of a name that make_run_id() could have made.
bool is_run_id(std::string_view name);

/// The folder of one run, 0700: events.jsonl, result.json, control.sock and, unless --log-dir names another place, the
/// log files. Others see it as a run from begin() on, and as a living one while its lock is held. The lock is taken
/// first, so that the folder of a launcher that is killed before begin() is removed with old runs.
class RunDirectory {
 public:
  /// \param path  its parent is made, too, where it is missing
  /// \throws std::system_error  the folder or its lock cannot be made, or others may change what is in its parent.
  explicit RunDirectory(const std::filesystem::path& path);

  /// The run has begun, and answers through its control socket.
  /// \param run_name  the name of the job (--rdzv-id), for run_name_of(); may be empty.
  /// \throws std::system_error  the lock cannot be renamed.
  void begin(std::string_view run_name);

  [[nodiscard]] const Folder& folder() const { return folder_; }
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

  /// As prune_runs(), of the runs beside this one.
  void prune_others(std::size_t kept, std::size_t tolerated) const;

  /// Removes it with all that is in it: the run did not begin.
  void remove();

 private:
  [[noreturn]] void refuse_to_lock(int error) const;

  Folder state_;
  Folder folder_;
  Fd lock_;
};

/// True of a folder that an lrun made for a run, once that has begun.
bool is_run(const std::filesystem::path& folder);

/// The name of the run's job (--rdzv-id); empty: it has none, or it cannot be read.
std::string run_name_of(const std::filesystem::path& run_directory);

/// When the run made its folder, more exact than its id; the epoch when it is gone.
std::filesystem::file_time_type time_of_run(const std::filesystem::path& run_directory);

/// True when no living lrun holds the run's lock.
bool is_stale(const std::filesystem::path& run_directory);

/// Removes the oldest of this user's runs beyond `kept` when there are more than `tolerated`. Living runs are never
/// removed. Links, and files and folders that are no run or do not have the name of one, are neither counted nor
/// removed. Errors are ignored: the next run tries again.
void prune_runs(const Folder& state_folder, std::size_t kept, std::size_t tolerated);

}  // namespace lrun::launcher
