#include "runtime/collectives/common/byte_lock.h"

#include <fcntl.h>
#include <unistd.h>

namespace lrun::detail {
namespace {

// A lock of the process (F_SETLK), not of the open file (F_OFD_SETLK): that one would live on in forked children.
struct flock lock_of(std::size_t offset) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(offset);
  lock.l_len = 1;
  return lock;
}

}  // namespace

bool lock_byte(int fd, std::size_t offset) noexcept {
  const struct flock lock = lock_of(offset);
  return ::fcntl(fd, F_SETLK, &lock) == 0;
}

bool is_byte_locked(int fd, std::size_t offset) noexcept {
  struct flock lock = lock_of(offset);
  return ::fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace lrun::detail
