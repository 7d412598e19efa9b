#include "logs/log_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/appended_file.h"

namespace lrun::launcher {

LogFiles::LogFiles(const LogOptions& options, Warning warning) : options_(options), warning_(std::move(warning)) {
  begin_attempt();
}

void LogFiles::open(const Folder& folder, std::string attempt) {
  folder_ = &folder;
  attempt_ = std::move(attempt);
  for (const LogStream stream : kLogStreams) {
    if (!filters(stream)) continue;
    RankLogFile& file = filtered_[stream == LogStream::kOut ? 0 : 1];
    const char* const name = stream == LogStream::kOut ? "/filtered_stdout.log" : "/filtered_stderr.log";
    refused(file, file.open_at(folder, attempt_ + name));
  }
}

void LogFiles::begin_attempt() {
  folder_ = nullptr;
  for (RankLogFile& file : filtered_) file = RankLogFile(options_.max_file_bytes);
}

std::string LogFiles::place_of(int local_rank, LogStream stream) {
  return std::to_string(local_rank) + (stream == LogStream::kOut ? "/stdout.log" : "/stderr.log");
}

void LogFiles::name(LogSource& source) {
  if (folder_ == nullptr) return;
  const std::string place = attempt_ + "/" + place_of(source.worker->local_rank, source.stream);
  refused(source.file, source.file.open_at(*folder_, place));
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
  warning_(fmt::format("log file '{}' cannot be written: {}; the run goes on without what is lost",
                       file.path().string(), file_refusal_text(error)));
}

}  // namespace lrun::launcher
