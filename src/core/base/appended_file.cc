#include "base/appended_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

#include "base/replaced_file.h"

namespace lrun::inline core {
namespace {

/// The folder that a file is in, held open where it is not `folder` itself, and the file's name there.
struct FilePlace {
  Folder inner;
  int folder = -1;  ///< -1: it cannot be made, and errno says why
  std::string name;
};

FilePlace find_place(const Folder& folder, std::string_view place) {
  const std::size_t slash = place.rfind('/');
  if (slash == std::string_view::npos) return {{}, folder.fd(), std::string(place)};
  FilePlace found{folder.inner(place.substr(0, slash)), -1, std::string(place.substr(slash + 1))};
  found.folder = found.inner.fd();
  return found;
}

}  // namespace

Fd open_to_append(const Folder& folder, std::string_view place, mode_t mode) {
  const FilePlace file = find_place(folder, place);
  if (file.folder < 0) return {};
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW;
  Fd fd(::openat(file.folder, file.name.c_str(), kFlags | O_NONBLOCK, mode));
  if (!fd) return fd;
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    fd.reset();
    errno = ENXIO;
    return fd;
  }
  keep_for_owner(fd.get());
  ::fcntl(fd.get(), F_SETFL, O_APPEND);  // a worker may inherit it
  return fd;
}

int set_aside(const Folder& folder, std::string_view place) {
  const FilePlace file = find_place(folder, place);
  if (file.folder < 0) return errno;
  const std::string older = file.name + ".1";
  // Of two names of one file rename() makes none, and says that all is well.
  if (::unlinkat(file.folder, older.c_str(), 0) != 0 && errno != ENOENT) return errno;
  const bool renamed = ::renameat(file.folder, file.name.c_str(), file.folder, older.c_str()) == 0;
  return renamed || errno == ENOENT ? 0 : errno;
}

std::string file_refusal_text(int error_number) {
  if (error_number == ENXIO) return "it is not a regular file";
  if (error_number == ETIME) return "nothing was written to it for 10 seconds";
  if (error_number == ELOOP) return "it is a symbolic link";
  if (error_number == ENOLINK) return "it is a symbolic link to a file that is not there";
  return std::generic_category().message(error_number);
}

}  // namespace lrun::inline core
