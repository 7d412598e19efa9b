#pragma once

#include <string>
#include <vector>

namespace lrun {

/// Why lrun cannot be started on a host.
struct HostProblem {
  std::string host;
  std::string why;  ///< 'ssh: connect to host h2 port 22: Connection refused'

  bool operator==(const HostProblem&) const = default;
};

/// One table of all hosts that cannot be used, and what to do about it. `problems` is not empty.
std::string hosts_problem_text(const std::vector<HostProblem>& problems, std::size_t hosts, bool colour);

}  // namespace lrun
