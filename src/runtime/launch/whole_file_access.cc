#include "runtime/launch/whole_file_access.h"

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>

namespace lrun::detail {

int write_at(int fd, const void* data, std::size_t size, std::uint64_t offset) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::pwrite(fd, bytes, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written == 0 ? ENOSPC : errno;
    bytes += written;
    size -= static_cast<std::size_t>(written);
    offset += static_cast<std::uint64_t>(written);
  }
  return 0;
}

int read_at(int fd, void* data, std::size_t size, std::uint64_t offset) {
  char* bytes = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t count = ::pread(fd, bytes, size, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count == 0 ? ENODATA : errno;
    bytes += count;
    size -= static_cast<std::size_t>(count);
    offset += static_cast<std::uint64_t>(count);
  }
  return 0;
}

}  // namespace lrun::detail
