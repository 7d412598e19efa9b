#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "logs/log_options.h"
#include "logs/log_worker.h"

namespace lrun {

/// The files of one attempt: one a rank and stream, and the copies of lines that a filter picks out.
///
/// Whatever the disk refuses is one warning in all, and the run goes on.
class LogFiles {
 public:
  using Warning = std::function<void(const std::string& text)>;

  LogFiles(const LogOptions& options, Warning warning);

  /// From now on files have names; `attempt_dir` empty: they have none, bytes are kept until they have.
  void open(std::filesystem::path attempt_dir);
  /// Writes what a source's file kept until there was a folder.
  void write_kept(LogSource& source) {
    if (source.file.keeps_bytes()) name(source);
  }
  /// Takes over what was read from a source.
  void write(LogSource& source, std::string_view bytes) {
    if (!source.to_file) return;
    if (source.file.path().empty()) name(source);
    refused(source.file, source.file.write(bytes));
  }

  /// Lines of the stream are looked at.
  [[nodiscard]] bool filters(LogStream stream) const { return options_.files && !texts(stream).empty(); }
  /// Copies a piece of a line when it holds one of the texts, and then the rest of its line.
  void copy_if_wanted(LogSource& source, std::string_view piece);

  /// The path of a rank's file below the attempt's folder.
  static std::filesystem::path path_of(const std::filesystem::path& attempt_dir, int local_rank, LogStream stream);

 private:
  /// Gives a source's file its name, once there is a folder.
  void name(LogSource& source);
  [[nodiscard]] const std::vector<std::string>& texts(LogStream stream) const {
    return stream == LogStream::kOut ? options_.stdout_filters : options_.stderr_filters;
  }
  void refused(const RankLogFile& file, int error);

  const LogOptions& options_;
  Warning warning_;
  std::filesystem::path attempt_dir_;
  std::array<RankLogFile, 2> filtered_;
  bool warned_ = false;
};

}  // namespace lrun
