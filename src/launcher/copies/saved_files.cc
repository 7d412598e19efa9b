// In: a folder in memory. Out: the files that programs have saved in it. Called by CopySender, and by CopyKeeper for
// the copies that it sends.
#include "copies/saved_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "base/unfinished_name.h"

namespace lrun::launcher {
namespace {

FileStamp stamp_of(const struct stat& status) {
  return {.inode = status.st_ino,
          .time_ns = status.st_mtim.tv_sec * kNanosecondsPerSecond + status.st_mtim.tv_nsec,
          .bytes = static_cast<std::uint64_t>(status.st_size)};
}

/// The kernel refuses a lease on a file that is open for writing. It is given back at once: a program that opens the
/// file for writing meanwhile waits for that.
bool is_being_written(int fd) {
  if (::fcntl(fd, F_SETLEASE, F_RDLCK) != 0) return errno == EAGAIN;
  ::fcntl(fd, F_SETLEASE, F_UNLCK);
  return false;
}

}  // namespace

SavedFiles saved_files(const std::string& folder, const std::function<void(const char* path)>& watch) {
  SavedFiles files;
  std::vector<std::string> folders{""};  // each with a '/' at its end
  while (!folders.empty()) {
    const std::string inner = std::move(folders.back());
    folders.pop_back();
    const std::string path = folder + '/' + inner;
    if (watch) watch(path.c_str());
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(path.c_str()), ::closedir);
    while (const dirent* const entry = entries ? ::readdir(entries.get()) : nullptr) {
      const std::string_view name(entry->d_name);
      struct stat status {};
      if (name == "." || name == ".." || is_unfinished_name(name)) continue;
      if (::fstatat(::dirfd(entries.get()), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISDIR(status.st_mode)) folders.push_back((inner + entry->d_name).append("/"));
      if (S_ISREG(status.st_mode)) files.emplace(inner + entry->d_name, stamp_of(status));
      if (files.size() >= kMostSavedFiles) return files;
    }
  }
  return files;
}

OpenFile open_complete(const std::string& folder, const std::string& path) {
  OpenFile file{.path = path, .fd = {}, .stamp = {}};
  Fd fd(::open((folder + '/' + path).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) || is_being_written(fd.get())) return file;
  file.stamp = stamp_of(status);
  file.mode = status.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
  file.fd = std::move(fd);
  return file;
}

bool is_unchanged(const OpenFile& file) {
  struct stat status {};
  return ::fstat(file.fd.get(), &status) == 0 && stamp_of(status) == file.stamp;
}

}  // namespace lrun::launcher
