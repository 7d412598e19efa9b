#pragma once

#include <string>
#include <vector>

#include "runtime/collectives/bootstrap/group_options.h"

namespace lrun::detail {

/// Which ranks of a group are on which host. Value. Hosts come in the order of their lowest ranks, which are their
/// leaders; ranks of one host need not be neighbours, and hosts may have different numbers of them.
struct HostLayout {
  std::vector<std::vector<int>> ranks;  ///< By host, ascending.

  bool operator==(const HostLayout&) const = default;

  /// \param hosts  by rank: equal for ranks of one host.
  static HostLayout of(const std::vector<std::string>& hosts);

  [[nodiscard]] int hosts() const { return static_cast<int>(ranks.size()); }
  [[nodiscard]] int most_ranks() const;
  [[nodiscard]] int host_of(int rank) const;
  [[nodiscard]] int place_in_host(int rank) const;
  [[nodiscard]] std::vector<int> leaders() const;
};

/// Meets the other ranks in the store and finds out on which hosts they are. Collective. Processes are on one host if
/// they can share memory: they have the same running kernel and the same /dev/shm. \throws as GroupRendezvous.
HostLayout meet_hosts(const GroupOptions& options);

}  // namespace lrun::detail
