#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/duration.h"
#include "plan/named_value.h"

namespace lrun::launcher {

/// Where launchers meet: 'node0:29400', '[fe80::1]:29400'.
struct Endpoint {
  std::string host;         ///< without brackets; empty: none was given
  std::optional<int> port;  ///< empty: the backend's own

  bool operator==(const Endpoint&) const = default;
};

std::string text_of(const Endpoint& endpoint);

/// How an etcd is asked over TLS: the names of files in PEM format.
struct EtcdTls {
  std::string authorities;  ///< whose certificates are trusted; empty: those that this system trusts
  std::string certificate;  ///< ours; empty: none
  std::string key;          ///< of it; empty: in the same file

  bool operator==(const EtcdTls&) const = default;
};

/// --rdzv-backend. Both names of torchrun for an etcd mean one of version 3.
enum class RendezvousBackend { kStatic, kC10d, kEtcd, kEtcdV2 };
inline constexpr NamedValue<RendezvousBackend> kRendezvousBackends[] = {{"static", RendezvousBackend::kStatic},
                                                                        {"c10d", RendezvousBackend::kC10d},
                                                                        {"etcd", RendezvousBackend::kEtcd},
                                                                        {"etcd-v2", RendezvousBackend::kEtcdV2}};
inline std::string text_of(RendezvousBackend backend) { return name_in(kRendezvousBackends, backend); }

/// How the launchers of a job on several nodes find each other.
struct RendezvousPlan {
  /// Who holds the meeting.
  enum class Hosting {
    kNever,   ///< somebody else
    kIfFree,  ///< we, unless another launcher on this machine was first
    kMust,    ///< we
  };

  RendezvousBackend backend = RendezvousBackend::kStatic;  ///< never kEtcdV2
  std::string host;                                        ///< a name or a numeric address; empty: nobody said where
  int port = 0;                                            ///< 0: the kernel chooses; then nobody else can come
  int listener = -1;                ///< a socket that listens at `port` already, for who holds the meeting; -1: none
  std::vector<Endpoint> etcd;       ///< of an etcd that knows who holds the meeting; the first is host and port, too
  std::string etcd_folder;          ///< of the job's keys there: '/lrun/NAME'
  std::optional<EtcdTls> etcd_tls;  ///< empty: it is asked over plain HTTP
  Hosting hosting = Hosting::kNever;
  bool leaves_endpoint = false;       ///< '--rdzv-conf is_host=false': another node has to serve it
  bool workers_use_endpoint = false;  ///< static: the workers' store is at the endpoint, too; else node 0 hosts it
  bool rank_0_hosts_store = false;    ///< its worker does; the launcher only keeps the port for it
  bool serves_horovod = false;        ///< the host of the workers' store serves Horovod's rendezvous, too
  std::optional<int> node_rank;       ///< asked for
  std::string node_rank_from;         ///< who did: '--node-rank', 'RANK'
  std::string host_from;              ///< who said the host: '--rdzv-endpoint', 'MASTER_ADDR'; empty: nobody
  std::string port_option = "--rdzv-endpoint";  ///< that names another port than this one
  std::string local_addr;                       ///< where others reach us; empty: the route to the meeting decides
  bool of_ranks = false;  ///< each rank has a launcher; node ranks and numbers of nodes here are then those of ranks
  int min_nodes = 1;
  int max_nodes = 1;
  int spares = 0;                     ///< launchers that come beyond max_nodes, to take the place of lost ones
  Duration connect_timeout{600'000};  ///< to reach the meeting
  Duration etcd_start{10'000};        ///< for an etcd that refuses connections to be there
  Duration join_timeout{600'000};     ///< for enough nodes
  Duration replacement{600'000};      ///< for others in the place of lost nodes
  Duration last_call{1000};           ///< with enough nodes, for one more: since the last one came
  Duration heartbeat{5000};           ///< a launcher that is silent for so long is lost

  bool operator==(const RendezvousPlan&) const = default;
};

}  // namespace lrun::launcher
