#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/folder.h"
#include "logs/log_options.h"
#include "logs/log_worker.h"

namespace lrun::launcher {

/// The files of one attempt: one a rank and stream, and the copies of lines that a filter picks out.
///
/// Errors of the disk cause one warning in all, and the run goes on.
class LogFiles {
 public:
  using Warning = std::function<void(const std::string& text)>;

  LogFiles(const LogOptions& options, Warning warning);

  /// From now on files have places: in `attempt`, 'attempt_0', below `folder`, which must outlive them.
  void open(const Folder& folder, std::string attempt);
  /// From now on files have no place: bytes are kept until they have one.
  void begin_attempt();
  /// Writes what a source's file kept until there was a folder.
  void write_kept(LogSource& source) {
    if (source.file.keeps_bytes()) name(source);
  }
  /// Writes the bytes that were read from a source.
  void write(LogSource& source, std::string_view bytes) {
    if (!source.to_file) return;
    if (!source.file.named()) name(source);
    refused(source.file, source.file.write(bytes));
  }

  /// Lines of the stream are looked at.
  [[nodiscard]] bool filters(LogStream stream) const { return options_.files && !texts(stream).empty(); }
  /// Copies a piece of a line when it holds one of the texts, and then the rest of its line.
  void copy_if_wanted(LogSource& source, std::string_view piece);

  /// The place of a rank's file below the folder of an attempt.
  static std::string place_of(int local_rank, LogStream stream);

 private:
  /// Gives a source's file its name, once there is a folder.
  void name(LogSource& source);
  [[nodiscard]] const std::vector<std::string>& texts(LogStream stream) const {
    return stream == LogStream::kOut ? options_.stdout_filters : options_.stderr_filters;
  }
  void refused(const RankLogFile& file, int error);

  const LogOptions& options_;
  Warning warning_;
  const Folder* folder_ = nullptr;  ///< of the run's files, once they have places
  std::string attempt_;
  std::array<RankLogFile, 2> filtered_;
  bool warned_ = false;
};

}  // namespace lrun::launcher
