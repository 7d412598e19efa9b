#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/managed_job.h"

namespace lrun::launcher {

/// A longer list of hosts is not taken for one.
inline constexpr std::size_t kMostListedHosts = 65'536;

/// The hosts of a file of PBS (one line per process), LSF or Grid Engine ('h2 2 all.q@h2 UNDEFINED'): the first word of
/// each line, each host once, in order. '#' begins a comment. Empty when the list is too long.
std::vector<std::string> hosts_in_lines(std::string_view text);

/// The hosts in 'h1 4 h2 4', as LSF writes them, each once. Empty when `text` is not such a list.
std::vector<std::string> hosts_in_pairs(std::string_view text);

/// The hosts of a job of PBS, LSF or Grid Engine. These managers start one program, on the first host, and that program
/// has to start others. With CSM, LSF's lists begin with the launch node, which is not part of the job.
struct ListedHosts {
  std::string manager;
  std::string by;                  ///< 'PBS_NODEFILE'
  std::vector<std::string> hosts;  ///< two or more

  bool operator==(const ListedHosts&) const = default;
};

/// \return empty when there is no such job, when it has a single host, and in a worker of another launcher.
std::optional<ListedHosts> find_listed_hosts(const ManagerView& view);

}  // namespace lrun::launcher
