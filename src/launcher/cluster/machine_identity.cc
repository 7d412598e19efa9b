#include "cluster/machine_identity.h"

#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/system_file.h"

namespace lrun::launcher {

std::string machine_identity() {
  const std::string boot = read_line("/proc/sys/kernel/random/boot_id");
  struct stat processes {};
  char name[HOST_NAME_MAX + 1] = {};
  if (boot.empty() || ::stat("/proc/self/ns/pid", &processes) != 0 || ::gethostname(name, sizeof name - 1) != 0) {
    return {};
  }
  return fmt::format("{} {} {}", boot, processes.st_ino, name);
}

}  // namespace lrun::launcher
