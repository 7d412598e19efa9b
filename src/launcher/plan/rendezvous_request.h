#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/duration.h"
#include "cluster/allocation.h"
#include "plan/rendezvous_plan.h"
#include "plan/setting.h"

namespace lrun::launcher {

/// The port of each backend where none is given.
inline constexpr int kPortOfC10d = 29'400;
inline constexpr int kPortOfEtcd = 2379;
inline constexpr int kPortOfStatic = 29'500;

/// Reads an endpoint as torchrun does, without the blanks around it. \return empty: the text is no endpoint
std::optional<Endpoint> parse_endpoint(std::string_view text);

/// torchrun's options about how launchers find each other. On one node they have to mean this machine, and may fix the
/// port of the workers' store.
struct RendezvousRequest {
  Setting<RendezvousBackend> backend{RendezvousBackend::kStatic};
  Setting<Endpoint> endpoint;            ///< --rdzv-endpoint; of an etcd the first
  std::vector<Endpoint> more_endpoints;  ///< the others of an etcd
  Setting<std::string> master_addr;      ///< empty: not given
  Setting<std::string> local_addr;       ///< empty: not given
  Setting<int> node_rank{-1};            ///< -1: not given
  int listener = -1;                     ///< a socket that listens at the endpoint already; -1: none
  bool is_up = false;                    ///< as JobPlace::is_up
  std::optional<bool> is_host;           ///< of --rdzv-conf, as the times below; empty: not given
  std::optional<Duration> join_timeout;
  std::optional<Duration> connect_timeout;
  std::optional<Duration> last_call;
  std::optional<Duration> heartbeat;
  std::string etcd_prefix = "/lrun";  ///< folder of all jobs in etcd
  bool etcd_is_asked_over_tls = false;
  EtcdTls etcd_tls = {};                   ///< used only then
  std::vector<std::string> warnings = {};  ///< about --rdzv-conf, one line each
  std::optional<TaskPlace> task = {};      ///< of a launcher for one rank; empty: it is for a node
  bool manager_replaces_nodes = false;     ///< the manager starts a node again that has ended
  bool shares_screen = false;              ///< as JobPlace::shares_screen
  std::vector<std::string> hosts = {};     ///< as JobPlace::hosts; empty: the user may have numbered them

  [[nodiscard]] bool uses_etcd() const {
    return backend.value == RendezvousBackend::kEtcd || backend.value == RendezvousBackend::kEtcdV2;
  }

  bool operator==(const RendezvousRequest&) const = default;
};

/// The port of the endpoint, or that of its backend. \throws UserError  the static backend has no default
int port_of(const RendezvousRequest& request);

/// The names and addresses in `request` that may be this host's.
std::vector<std::string> hosts_in(const RendezvousRequest& request);

/// With c10d and 'is_host=false': the endpoint at which a run of one node has to find a server, as with torchrun. The
/// run needs nothing of it. Empty: the run serves its own.
std::optional<Endpoint> endpoint_of_others(const RendezvousRequest& request);

}  // namespace lrun::launcher
