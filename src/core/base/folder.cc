// In: paths. Out: open folders, in which files are made without following links. Called for logs, run folders and all
// else that lrun writes.
#include "base/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

namespace lrun::inline core {
namespace {

constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
constexpr uid_t kUnmappedUser = 65534;  ///< in a user namespace, the owner of what belongs to the host's root
constexpr int kMostLinks = 40;          ///< as the kernel's

/// The umask takes rights away only; so the one that leaves exactly 0700 is set, for the life of this object.
class OwnersUmask {
 public:
  OwnersUmask() : before_(::umask(S_IRWXG | S_IRWXO)) {}
  OwnersUmask(const OwnersUmask&) = delete;
  OwnersUmask& operator=(const OwnersUmask&) = delete;
  ~OwnersUmask() { ::umask(before_); }

 private:
  mode_t before_;
};

[[noreturn]] void refuse(const char* what, const std::filesystem::path& path, int error) {
  throw std::system_error(error, std::generic_category(), std::string(what) + " '" + path.string() + "'");
}

bool make_private(int parent, const char* name) {
  const OwnersUmask umask;
  return ::mkdirat(parent, name, S_IRWXU) == 0;
}

/// Whether `inner` is ours. Its owner says so, but a file system may give all that is made there to one user: that is
/// then the owner of `outer`, too. One that we made goes by any owner where nobody could put another in its place.
bool is_ours(const struct stat& outer, const struct stat& inner, bool made) {
  const bool all_may_rename = (outer.st_mode & S_IWOTH) != 0 && (outer.st_mode & S_ISVTX) == 0;
  return inner.st_uid == ::geteuid() || inner.st_uid == outer.st_uid || (made && !all_may_rename);
}

/// \param may_exist  already. Empty when the machine refuses, with errno.
Fd make_and_open(int parent, const std::string& name, bool may_exist) {
  const bool made = make_private(parent, name.c_str());
  if (!made && (errno != EEXIST || !may_exist)) return {};
  Fd fd(::openat(parent, name.c_str(), kFolderFlags | O_NOFOLLOW));
  if (!fd) return fd;
  struct stat outer {};
  struct stat inner {};
  if (::fstat(parent, &outer) != 0 || ::fstat(fd.get(), &inner) != 0 || !is_ours(outer, inner, made)) {
    fd.reset();
    errno = EPERM;
  }
  return fd;
}

bool is_trusted(uid_t owner) { return owner == ::geteuid() || owner == 0 || owner == kUnmappedUser; }

/// Whether a folder's mode lets others rename what is ours in it.
bool others_may_rename_in(const struct stat& folder) {
  if ((folder.st_mode & S_ISVTX) != 0) return false;
  const bool is_own_group = folder.st_gid == 0 || folder.st_gid == ::geteuid();
  return (folder.st_mode & S_IWOTH) != 0 || ((folder.st_mode & S_IWGRP) != 0 && !is_own_group);
}

/// Puts a path's names before those that are still to be walked; the next one is the last.
void walk_first(std::vector<std::filesystem::path>& names, const std::filesystem::path& path) {
  const std::vector<std::filesystem::path> parts(path.begin(), path.end());
  names.insert(names.end(), parts.rbegin(), parts.rend());
}

/// Whether an absolute path leads to `end`, and only trusted users can change that. The steps are those of the kernel,
/// because a link may lead over another one, which neither the path nor its canonical form shows. Owners count, too: of
/// a folder, who may rename in it whatever its mode, and of what is in a sticky one.
bool leads_safely(const std::filesystem::path& path, const struct stat& end) {
  std::filesystem::path at;
  std::vector<std::filesystem::path> names;
  walk_first(names, path);
  struct stat folder {};
  for (int links = 0; !names.empty();) {
    const std::filesystem::path next = at / names.back();  // of an absolute link's target, '/' is the first
    names.pop_back();
    struct stat status {};
    if (others_may_rename_in(folder) || ::lstat(next.c_str(), &status) != 0 || !is_trusted(status.st_uid)) return false;
    if (S_ISLNK(status.st_mode)) {
      std::error_code error;
      walk_first(names, std::filesystem::read_symlink(next, error));
      if (error || ++links > kMostLinks) return false;
    } else {
      at = next;
      folder = status;
    }
  }
  return folder.st_dev == end.st_dev && folder.st_ino == end.st_ino;
}

}  // namespace

Folder Folder::open(const std::filesystem::path& path) {
  Fd fd(::open(path.c_str(), kFolderFlags));
  if (!fd) refuse("cannot open the folder", path, errno);
  return {std::move(fd), path};
}

Folder Folder::make(const std::filesystem::path& path) {
  std::error_code error;
  {
    const OwnersUmask umask;
    std::filesystem::create_directories(path, error);
  }
  if (error) refuse("cannot make the folder", path, error.value());
  return open(path);
}

Folder Folder::make_new(const std::string& name) const {
  std::filesystem::path path = path_ / name;
  Fd made = make_and_open(fd(), name, false);
  if (!made) refuse("cannot make the folder", path, errno);
  return {std::move(made), std::move(path)};
}

Folder Folder::inner(std::string_view names) const {
  Fd innermost;
  for (std::string_view rest = names; !rest.empty();) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    innermost = make_and_open(innermost ? innermost.get() : fd(), std::string(rest.substr(0, end)), true);
    if (!innermost) return {};
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {std::move(innermost), path_ / names};
}

bool Folder::is_removed() const {
  struct stat status {};
  return ::fstat(fd(), &status) == 0 && status.st_nlink == 0;
}

bool Folder::may_be_replaced() const {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path_, error);
  struct stat opened {};
  return error || ::fstat(fd(), &opened) != 0 || !leads_safely(absolute, opened);
}

bool Folder::lets_others_rename() const {
  struct stat status {};
  return ::fstat(fd(), &status) != 0 || !is_trusted(status.st_uid) || others_may_rename_in(status);
}

std::filesystem::path Folder::by_descriptor() const { return "/proc/self/fd/" + std::to_string(fd()); }

}  // namespace lrun::inline core
