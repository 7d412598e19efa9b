// In: where a program writes its checkpoints. Out: the time of the newest one, by which Restarts sees progress.
// AttemptLoop asks for it in a child process, since a file system may hang.
#include "run/newest_checkpoint.h"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/unfinished_name.h"
#include "base/whole_number.h"

namespace lrun::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostSecondsAhead = std::int64_t{24} * 3600;  // of the clock of a file server
constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

/// Looks through files and folders, each of which may be gone in the next moment, and at none twice.
class Search {
 public:
  explicit Search(const FileSet& left_out) : seen_(left_out) {}

  void look_at(const fs::path& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !seen_.emplace(status.st_dev, status.st_ino).second) return;
    if (S_ISDIR(status.st_mode)) return look_into(path);
    if (!S_ISREG(status.st_mode) || status.st_size == 0) return;
    const std::int64_t seconds = status.st_mtim.tv_sec;
    if (seconds < 0 || seconds > latest_) return;
    newest_ns_ = std::max(newest_ns_, seconds * kNanosecondsPerSecond + status.st_mtim.tv_nsec);
  }
  [[nodiscard]] std::int64_t newest_ns() const { return newest_ns_; }

 private:
  void look_into(const fs::path& folder) {
    std::error_code end;  // what cannot be read any more is left out
    for (fs::directory_iterator entry(folder, end); !end && entry != fs::directory_iterator(); entry.increment(end)) {
      const bool is_hidden = entry->path().filename().native().starts_with('.');
      if (!is_hidden && !is_unfinished_name(entry->path().filename().native())) look_at(entry->path());
    }
  }

  FileSet seen_;
  std::int64_t latest_ = std::time(nullptr) + kMostSecondsAhead;
  std::int64_t newest_ns_ = 0;
};

}  // namespace

FileSet files_of_lrun(const RunFolders& folders) {
  const auto fd_of = [](const Folder* folder) { return folder != nullptr ? folder->fd() : -1; };
  FileSet files;
  struct stat status {};
  for (const int fd : {fd_of(folders.run()), fd_of(folders.logs()), STDOUT_FILENO, STDERR_FILENO}) {
    if (::fstat(fd, &status) == 0) files.emplace(status.st_dev, status.st_ino);
  }
  return files;
}

std::int64_t newest_checkpoint_ns(const std::string& pattern, const FileSet& left_out) {
  Search search(left_out);
  std::error_code error;
  if (fs::exists(pattern, error)) {  // its name may be like a pattern
    search.look_at(pattern);
    return search.newest_ns();
  }
  glob_t found{};
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
    for (std::size_t i = 0; i < found.gl_pathc; ++i) {
      if (!is_unfinished_name(fs::path(found.gl_pathv[i]).filename().native())) search.look_at(found.gl_pathv[i]);
    }
  }
  ::globfree(&found);
  return search.newest_ns();
}

std::string look_for_checkpoints(const std::string& pattern, const FileSet& left_out, const std::string& memory) {
  const std::int64_t in_memory = memory.empty() ? 0 : newest_checkpoint_ns(memory, {});
  return fmt::format("{} {}", pattern.empty() ? 0 : newest_checkpoint_ns(pattern, left_out), in_memory);
}

NewestCheckpoints checkpoints_from(const ChildAnswer& answer) {
  if (answer.end != ChildAnswer::End::kAnswered) return {};
  const std::string_view text = answer.text;
  const std::size_t space = std::min(text.find(' '), text.size());
  return {whole_number<std::int64_t>(text.substr(0, space)).value_or(0),
          whole_number<std::int64_t>(text.substr(std::min(space + 1, text.size()))).value_or(0)};
}

void warn_of_no_look(const ChildAnswer& answer, const std::string& pattern, MessageSink& sink) {
  if (answer.end == ChildAnswer::End::kAnswered) return;
  const char* const why = answer.end == ChildAnswer::End::kTimedOut ? "the file system does not answer in time"
                                                                    : "the process that was to look has failed";
  sink.warn(fmt::format("cannot look for checkpoints in '{}', so that the restart counts: {}", pattern, why));
}

}  // namespace lrun::launcher
