#include "cli/user_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"

namespace lrun::launcher {
namespace {

/// \param is_pipe  the writer may still be running, so that reading needs a deadline
FileText read_all(const Fd& file, bool is_pipe, std::size_t most_bytes) {
  constexpr int kPatienceMs = 10'000;
  FileText result;
  while (true) {
    pollfd ready{file.get(), POLLIN, 0};
    if (is_pipe && ::poll(&ready, 1, kPatienceMs) == 0) return {ETIME, {}};
    char buffer[4096];
    const ssize_t count = ::read(file.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return {errno, {}};
    if (count == 0) return result;
    result.text.append(buffer, static_cast<std::size_t>(count));
    if (result.text.size() > most_bytes) return {EFBIG, {}};
  }
}

bool is_link(const std::string& path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0 && S_ISLNK(facts.st_mode);
}

}  // namespace

FileText read_user_file(const std::string& path, std::size_t most_bytes) {
  // Opening a pipe without a writer would block.
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) {
    const int error = errno;
    return {error == ENOENT && is_link(path) ? ENOLINK : error, {}};
  }
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return {errno, {}};
  if ((S_ISCHR(facts.st_mode) || S_ISBLK(facts.st_mode)) && path != "/dev/null") return {ENXIO, {}};
  return read_all(file, S_ISFIFO(facts.st_mode), most_bytes);
}

}  // namespace lrun::launcher
