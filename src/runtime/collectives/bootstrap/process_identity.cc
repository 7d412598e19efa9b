#include "runtime/collectives/bootstrap/process_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>

namespace lrun::detail {

ProcessIdentity ProcessIdentity::of_this_process() {
  ProcessIdentity identity;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  if (!(file >> identity.host)) throw std::system_error(errno, std::generic_category(), "read the kernel's boot id");
  struct stat status {};
  if (::stat("/proc/self/ns/pid", &status) == 0) identity.pid_space = status.st_ino;
  identity.pid = ::getpid();
  return identity;
}

std::optional<ProcessIdentity> ProcessIdentity::parse(const std::string& text) {
  ProcessIdentity identity;
  std::istringstream words(text);
  if (!(words >> identity.host >> identity.pid_space >> identity.pid)) return std::nullopt;
  return identity;
}

std::string ProcessIdentity::text() const { return host + ' ' + std::to_string(pid_space) + ' ' + std::to_string(pid); }

pid_t ProcessIdentity::pid_for(const ProcessIdentity& observer) const {
  return host == observer.host && pid_space == observer.pid_space ? pid : 0;
}

}  // namespace lrun::detail
