// In: the name of a run. Out: a folder in memory for its workers, and its end with the run. Called by lrun at its
// start, by a child of the guard for what earlier runs have left, and by the guard at the end (by the waker where it
// was killed).
#include "process/memory_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

namespace lrun::inline core {
namespace {

constexpr std::string_view kMemoryPrefix = "lrun-memory-";
constexpr const char* kWorkersFolder = "workers";

Fd open_without_links(const std::string& path) {
  return Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// With all rights for its owner, and no umask.
bool make_workers_folder(const Fd& outer) {
  return ::mkdirat(outer.get(), kWorkersFolder, S_IRWXU) == 0 &&
         ::fchmodat(outer.get(), kWorkersFolder, S_IRWXU, 0) == 0;
}

bool has_path(const Fd& folder, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(folder.get(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

/// As make() leaves a folder to this user.
bool is_private(const Fd& folder) {
  struct stat status {};
  return ::fstat(folder.get(), &status) == 0 && status.st_uid == ::geteuid() && (status.st_mode & 0777U) == S_IRWXU;
}

/// A folder is made writable before it is read. What cannot be removed stays. The working folder changes meanwhile: a
/// path may be longer than the kernel takes one, up to 64 KiB.
void remove_with_files(std::string path) {
  char* const roots[] = {path.data(), nullptr};
  const std::unique_ptr<FTS, int (*)(FTS*)> tree(::fts_open(roots, FTS_PHYSICAL | FTS_XDEV, nullptr), ::fts_close);
  if (!tree) return;
  while (const FTSENT* const entry = ::fts_read(tree.get())) {
    if (entry->fts_info == FTS_D) {
      ::chmod(entry->fts_accpath, S_IRWXU);
    } else if (entry->fts_info == FTS_DP || entry->fts_info == FTS_DNR) {
      ::rmdir(entry->fts_accpath);
    } else {
      ::unlink(entry->fts_accpath);
    }
  }
}

/// Else a person has made a folder of such a name.
bool has_workers_folder(const Fd& outer) {
  return ::faccessat(outer.get(), kWorkersFolder, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/// Calls `visit` with the path of each folder in `parent` that has a name like ours, but for `own`, until that is true.
template <class Visit>
bool any_other(const std::string& parent, const std::string& own, const Visit& visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(parent.c_str()), ::closedir);
  while (const dirent* const entry = entries ? ::readdir(entries.get()) : nullptr) {
    const std::string path = parent + '/' + entry->d_name;
    if (std::string_view(entry->d_name).starts_with(kMemoryPrefix) && path != own && visit(path)) return true;
  }
  return false;
}

/// The folder of a killed run, locked. Empty: another one is at `path`.
Fd open_abandoned(const std::string& path) {
  Fd fd = open_without_links(path);
  return fd && is_private(fd) && has_path(fd, path) && try_lock(fd) ? std::move(fd) : Fd();
}

void remove_those_abandoned(const std::string& parent, const std::string& own) {
  any_other(parent, own, [](const std::string& other) {
    const Fd fd = open_abandoned(other);
    if (!fd) return false;
    const bool was_empty = ::rmdir(other.c_str()) == 0;  // that of a run that was killed at once
    if (!was_empty && has_workers_folder(fd)) remove_with_files(other);
    return false;
  });
}

std::string parent_of_path(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

MemoryFolder MemoryFolder::make(std::string_view name, const std::string& parent) {
  const std::string first = (parent + '/' + std::string(kMemoryPrefix)).append(name);
  // Launchers of one job have one name, and a starting run may remove what is not locked yet.
  constexpr int kMostNames = 64;
  bool has_cleaned = false;
  for (int tries = 0; tries < kMostNames; ++tries) {
    std::string outer = tries == 0 ? first : first + '-' + std::to_string(tries + 1);
    if (::mkdir(outer.c_str(), S_IRWXU) != 0) {
      if (errno == ENOSPC && !std::exchange(has_cleaned, true)) {
        remove_those_abandoned(parent, "");
      } else if (errno != EEXIST) {
        break;
      }
      continue;
    }
    ::chmod(outer.c_str(), S_IRWXU);
    Fd fd = open_without_links(outer);
    const bool is_ours = fd && try_lock(fd) && is_private(fd) && has_path(fd, outer);
    if (!is_ours) continue;  // a run that cleans up has its lock
    if (make_workers_folder(fd)) return {std::move(fd), std::move(outer)};
    const int error = errno;
    ::rmdir(outer.c_str());
    errno = error;
    break;
  }
  return {};
}

std::string MemoryFolder::path() const { return fd_ ? outer_ + '/' + kWorkersFolder : std::string(); }

std::string MemoryFolder::make_again() const {
  const bool is_there = fd_ && (make_workers_folder(fd_) || errno == EEXIST);
  return is_there ? path() : std::string();
}

void MemoryFolder::remove() const {
  if (fd_ && has_path(fd_, outer_)) remove_with_files(outer_);
}

bool MemoryFolder::has_abandoned() const {
  const auto is_abandoned = [](const std::string& path) { return static_cast<bool>(open_abandoned(path)); };
  return fd_ && any_other(parent_of_path(outer_), outer_, is_abandoned);
}

void MemoryFolder::remove_abandoned() const {
  if (fd_) remove_those_abandoned(parent_of_path(outer_), outer_);
}

}  // namespace lrun::inline core
