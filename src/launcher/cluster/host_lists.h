#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/managed_job.h"

namespace lrun::launcher {

/// More hosts than this are a list that no cluster wrote.
inline constexpr std::size_t kMostListedHosts = 65'536;

/// The first word of each line of a host file, each host once, in order; empty lines and what follows a '#' left out.
/// So PBS (a line a process), LSF and Grid Engine ('h2 2 all.q@h2 UNDEFINED') write them. A list that is too long is
/// none.
std::vector<std::string> hosts_in_lines(std::string_view text);

/// The hosts in 'h1 4 h2 4', as LSF writes them, each once; empty: it is no such list.
std::vector<std::string> hosts_in_pairs(std::string_view text);

/// The hosts of a job whose manager starts one program, on the first of them, and leaves it to that to use the others:
/// PBS, LSF, Grid Engine. LSF's lists on a machine with CSM begin with the launch node, which is none of them.
struct ListedHosts {
  std::string manager;
  std::string by;                  ///< 'PBS_NODEFILE'
  std::vector<std::string> hosts;  ///< two or more

  bool operator==(const ListedHosts&) const = default;
};

/// \return empty: no such job, one of a single host, or a worker of another launcher.
std::optional<ListedHosts> find_listed_hosts(const ManagerView& view);

}  // namespace lrun::launcher
