#pragma once

#include <string>
#include <vector>

namespace lrun::launcher {

/// Why lrun cannot be started on a host.
struct HostProblem {
  std::string host;
  std::string why;  ///< 'ssh: connect to host h2 port 22: Connection refused'

  bool operator==(const HostProblem&) const = default;
};

/// One table of all hosts that cannot be used, and what to do about it. `problems` is not empty.
std::string hosts_problem_text(const std::vector<HostProblem>& problems, std::size_t hosts, bool colour);

/// 'the connection to h3 was lost: ssh died of SIGKILL', of all that ended together. `hosts` is not empty.
std::string lost_hosts_text(const std::vector<std::string>& hosts, const std::string& why);

}  // namespace lrun::launcher
