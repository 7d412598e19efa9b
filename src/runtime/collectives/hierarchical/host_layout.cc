#include "runtime/collectives/hierarchical/host_layout.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <map>

#include "base/split.h"
#include "runtime/collectives/bootstrap/group_rendezvous.h"

namespace lrun::detail {
namespace {

/// Containers of one kernel have the same boot id; those that share nothing have a /dev/shm of their own.
std::string host_of_this_process(const ProcessIdentity& process) {
  struct stat status {};
  const bool known = ::stat("/dev/shm", &status) == 0;
  return process.host + '/' + std::to_string(known ? std::uint64_t{status.st_dev} : process.pid_space);
}

}  // namespace

HostLayout HostLayout::of(const std::vector<std::string>& hosts) {
  HostLayout layout;
  std::map<std::string, std::size_t> known;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const auto [entry, is_new] = known.emplace(hosts[rank], layout.ranks.size());
    if (is_new) layout.ranks.emplace_back();
    layout.ranks[entry->second].push_back(static_cast<int>(rank));
  }
  return layout;
}

int HostLayout::most_ranks() const {
  std::size_t most = 0;
  for (const auto& members : ranks) most = std::max(most, members.size());
  return static_cast<int>(most);
}

int HostLayout::host_of(int rank) const {
  const auto found = std::ranges::find_if(
      ranks, [rank](const std::vector<int>& members) { return std::ranges::binary_search(members, rank); });
  return static_cast<int>(found - ranks.begin());
}

int HostLayout::place_in_host(int rank) const {
  const auto& members = ranks[static_cast<std::size_t>(host_of(rank))];
  return static_cast<int>(std::ranges::lower_bound(members, rank) - members.begin());
}

std::vector<int> HostLayout::leaders() const {
  std::vector<int> lowest;
  for (const auto& members : ranks) lowest.push_back(members.front());
  return lowest;
}

HostLayout meet_hosts(const GroupOptions& options) {
  GroupOptions all = options;
  all.name += "/hosts";
  GroupRendezvous rendezvous(all);
  const std::string host = options.host.empty() ? host_of_this_process(rendezvous.process()) : options.host;
  const std::string hosts = rendezvous.exchange(host, join_lines);
  GroupRendezvous::note_made(all);
  return HostLayout::of(split_lines(hosts));
}

}  // namespace lrun::detail
