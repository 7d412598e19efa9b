#include "logs/log_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/appended_file.h"

namespace lrun {

LogFiles::LogFiles(const LogOptions& options, Warning warning) : options_(options), warning_(std::move(warning)) {}

void LogFiles::open(std::filesystem::path attempt_dir) {
  attempt_dir_ = std::move(attempt_dir);
  for (const LogStream stream : {LogStream::kOut, LogStream::kErr}) {
    RankLogFile& file = filtered_[stream == LogStream::kOut ? 0 : 1];
    file = RankLogFile(options_.max_file_bytes);
    if (attempt_dir_.empty() || !filters(stream)) continue;
    refused(file,
            file.open_at(attempt_dir_ / (stream == LogStream::kOut ? "filtered_stdout.log" : "filtered_stderr.log")));
  }
}

std::filesystem::path LogFiles::path_of(const std::filesystem::path& attempt_dir, int local_rank, LogStream stream) {
  return attempt_dir / std::to_string(local_rank) / (stream == LogStream::kOut ? "stdout.log" : "stderr.log");
}

void LogFiles::name(LogSource& source) {
  if (attempt_dir_.empty()) return;
  refused(source.file, source.file.open_at(path_of(attempt_dir_, source.worker->local_rank, source.stream)));
}

void LogFiles::copy_if_wanted(LogSource& source, std::string_view piece) {
  const std::vector<std::string>& wanted = texts(source.stream);
  const bool begins = !source.copying;
  if (begins && std::none_of(wanted.begin(), wanted.end(),
                             [&](const std::string& text) { return piece.find(text) != std::string_view::npos; })) {
    return;
  }
  RankLogFile& file = filtered_[source.stream == LogStream::kOut ? 0 : 1];
  source.copying = piece.back() != '\n';
  refused(file, file.write((begins ? source.plain_prefix : std::string()) + std::string(piece)));
}

void LogFiles::refused(const RankLogFile& file, int error) {
  if (error == 0 || std::exchange(warned_, true)) return;
  warning_(fmt::format("log file '{}' cannot be written: {}; the run goes on without what is lost", file.path(),
                       file_refusal_in_words(error)));
}

}  // namespace lrun
