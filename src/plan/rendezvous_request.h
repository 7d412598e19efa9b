#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/allocation.h"
#include "plan/setting.h"

namespace lrun {

struct LaunchPlan;

/// Where launchers meet: 'node0:29400', '[fe80::1]:29400'.
struct Endpoint {
  std::string host;         ///< without brackets; empty: none was given
  std::optional<int> port;  ///< empty: the backend's own

  bool operator==(const Endpoint&) const = default;
};

/// Reads an endpoint as torchrun does, blanks around it left out. \return empty for anything that is none.
std::optional<Endpoint> parse_endpoint(std::string_view text);

/// torchrun's options about how launchers find each other. On one machine there is nobody to find: they have to mean
/// this machine, and may fix the port of the workers' store.
struct RendezvousRequest {
  Setting<std::string> backend{"static"};  ///< 'static' or 'c10d'
  Setting<Endpoint> endpoint;              ///< --rdzv-endpoint
  Setting<std::string> master_addr;        ///< empty: not given
  Setting<std::string> local_addr;         ///< empty: not given
  std::vector<std::string> warnings = {};  ///< about --rdzv-conf, one line each

  bool operator==(const RendezvousRequest&) const = default;
};

/// The names and addresses in `request` of which it has to be known whether they are this host's.
std::vector<std::string> hosts_in(const RendezvousRequest& request);

/// Decides where the workers' store is: its address, and its port unless the kernel chooses it.
/// \throws UserError  another machine is meant, or the backend needs a port.
void choose_master(const RendezvousRequest& request, const Setting<std::optional<int>>& master_port,
                   const AllocatedNode& this_host, LaunchPlan& plan);

}  // namespace lrun
