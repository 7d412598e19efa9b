#include "base/replaced_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/fd.h"

namespace lrun::inline core {

void keep_for_owner(int file) {
  constexpr mode_t kOwners = S_IRUSR | S_IWUSR;
  constexpr mode_t kAll = 07777;
  struct stat facts {};
  if (::fstat(file, &facts) == 0 && (facts.st_mode & kOwners) != kOwners)
    ::fchmod(file, (facts.st_mode & kAll) | kOwners);
}

int replace_file(const Folder& folder, const std::string& name, std::string_view text, mode_t mode) {
  const std::string beside = name + ".new";
  // It may be a pipe that would make us wait, or a link: the new file takes its place.
  ::unlinkat(folder.fd(), beside.c_str(), 0);
  const Fd out(::openat(folder.fd(), beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!out) return errno;
  keep_for_owner(out.get());
  int error = write_all(out.get(), text);
  if (error == 0 && ::renameat(folder.fd(), beside.c_str(), folder.fd(), name.c_str()) != 0) error = errno;
  if (error != 0) ::unlinkat(folder.fd(), beside.c_str(), 0);
  return error;
}

}  // namespace lrun::inline core
