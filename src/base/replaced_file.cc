#include "base/replaced_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace lrun {

int replace_file(const Folder& folder, const std::string& name, std::string_view text, mode_t mode) {
  const std::string beside = name + ".new";
  // Whatever it is, a pipe that would make us wait or a link, the file is to be a new one.
  ::unlinkat(folder.fd(), beside.c_str(), 0);
  const Fd out(::openat(folder.fd(), beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!out) return errno;
  int error = write_all(out.get(), text);
  if (error == 0 && ::renameat(folder.fd(), beside.c_str(), folder.fd(), name.c_str()) != 0) error = errno;
  if (error != 0) ::unlinkat(folder.fd(), beside.c_str(), 0);
  return error;
}

}  // namespace lrun
