#include "process/storage_space.h"

#include <sys/statvfs.h>

namespace lrun::inline core {

bool StorageSpace::full() const { return total_bytes > 0 && free_bytes <= total_bytes / 100; }

std::optional<StorageSpace> storage_space(const char* folder) {
  struct statvfs space {};
  if (::statvfs(folder, &space) != 0) return std::nullopt;
  return StorageSpace{space.f_blocks * space.f_frsize, space.f_bavail * space.f_frsize};
}

}  // namespace lrun::inline core
