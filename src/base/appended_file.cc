#include "base/appended_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

namespace lrun {

Fd open_to_append(const std::filesystem::path& path, mode_t mode) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY;
  Fd fd(::open(path.c_str(), kFlags | O_NONBLOCK, mode));
  if (!fd) return fd;
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    fd.reset();
    errno = ENXIO;
    return fd;
  }
  ::fcntl(fd.get(), F_SETFL, O_APPEND);  // a worker may inherit it
  return fd;
}

std::string file_refusal_in_words(int error_number) {
  return error_number == ENXIO ? "it is not a regular file" : std::generic_category().message(error_number);
}

}  // namespace lrun
