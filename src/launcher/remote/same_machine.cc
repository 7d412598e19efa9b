#include "remote/same_machine.h"

namespace lrun::launcher {

std::vector<std::string> names_of_machine(const std::vector<ReachedHost>& hosts, std::size_t host) {
  const std::string& machine = hosts[host].ready.machine;
  std::vector<std::string> names;
  for (const ReachedHost& other : hosts) {
    if (!machine.empty() && other.ready.machine == machine) names.push_back(other.name);
  }
  return names.size() > 1 ? names : std::vector<std::string>();
}

}  // namespace lrun::launcher
