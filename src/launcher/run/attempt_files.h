#pragma once

#include <filesystem>
#include <string>

#include "base/fd.h"
#include "base/folder.h"
#include "base/log_stream.h"
#include "plan/launch_plan.h"

namespace lrun::launcher {

/// The folder of one attempt's log and error files: 'attempt_0' in the folder of the run's files. A value; makes no
/// folder by itself.
class AttemptFiles {
 public:
  /// \param logs  the folder of the run's log files, which must outlive this; nullptr: the run has none
  AttemptFiles(const Folder* logs, std::string name);

  [[nodiscard]] const Folder* logs() const { return logs_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// The absolute path; empty: there are no files.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// A worker may leave its error file in its folder. Silent workers of short runs never get one.
  void make_rank_folders(const NodePlan& node) const;
  /// A file beside those of the ranks, opened to append; empty: it cannot be made.
  [[nodiscard]] Fd open(const std::string& file) const;

  /// The file for a stream that the worker writes itself.
  [[nodiscard]] std::filesystem::path path_of(int local_rank, LogStream stream) const;
  /// Makes that file. Only where there are files.
  /// \throws std::system_error  it cannot be made.
  [[nodiscard]] Fd open_stream(int local_rank, LogStream stream) const;

 private:
  const Folder* logs_;
  std::string name_;
  std::filesystem::path path_;
};

}  // namespace lrun::launcher
