#include "run/attempt_files.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/appended_file.h"
#include "logs/log_files.h"

namespace lrun::launcher {
namespace {

constexpr mode_t kMode = 0666;  // before the user's umask

}  // namespace

AttemptFiles::AttemptFiles(const Folder* logs, std::string name)
    : logs_(logs), name_(std::move(name)), path_(logs == nullptr ? std::filesystem::path() : logs->path() / name_) {}

void AttemptFiles::make_rank_folders(const NodePlan& node) const {
  const Folder folder = logs_ != nullptr ? logs_->inner(name_) : Folder();
  if (!folder) return;
  for (const WorkerPlan& worker : node.workers) (void)folder.inner(std::to_string(worker.local_rank));
}

Fd AttemptFiles::open(const std::string& file) const {
  return logs_ != nullptr ? open_to_append(*logs_, name_ + "/" + file, kMode) : Fd();
}

std::filesystem::path AttemptFiles::path_of(int local_rank, LogStream stream) const {
  return path_ / LogFiles::place_of(local_rank, stream);
}

Fd AttemptFiles::open_stream(int local_rank, LogStream stream) const {
  const std::filesystem::path path = path_of(local_rank, stream);
  const Folder folder = logs_->inner(name_ + "/" + std::to_string(local_rank));
  if (!folder) {
    throw std::system_error(errno, std::generic_category(),
                            "cannot make the folder '" + path.parent_path().string() + "'");
  }
  Fd fd = open_to_append(folder, path.filename().string(), kMode);
  if (fd) return fd;
  const int error = errno;
  const char* const why = error == ENXIO ? ", which is not a regular file" : "";
  throw std::system_error(error, std::generic_category(), "open '" + path.string() + "'" + why);
}

}  // namespace lrun::launcher
