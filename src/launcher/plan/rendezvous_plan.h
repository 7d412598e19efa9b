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
  /// Whether this launcher hosts the rendezvous.
  enum class Hosting {
    kNever,
    kIfFree,  ///< unless another launcher on this machine was first
    kMust,
  };

  RendezvousBackend backend = RendezvousBackend::kStatic;  ///< never kEtcdV2
  std::string host;                                        ///< a name or a numeric address; empty: not given
  int port = 0;                                            ///< 0: the kernel chooses, and no other launcher can join
  int listener = -1;                ///< a socket of the host that listens at `port` already; -1: none
  bool is_up = false;               ///< something listens there before any launcher is told of it
  std::vector<Endpoint> etcd;       ///< members of the etcd; the first is host and port, too
  std::string etcd_folder;          ///< of the job's keys there: '/lrun/NAME'
  std::optional<EtcdTls> etcd_tls;  ///< empty: plain HTTP
  Hosting hosting = Hosting::kNever;
  bool may_be_elsewhere = false;                ///< a person made this node rank 0, and `host` was no name of it
  bool leaves_endpoint = false;                 ///< '--rdzv-conf is_host=false': another node has to serve it
  bool workers_use_endpoint = false;            ///< static: the workers' store is there, too; otherwise node 0 hosts it
  bool rank_0_hosts_store = false;              ///< the worker of rank 0 does; its launcher only reserves the port
  bool serves_horovod = false;                  ///< the host of the workers' store serves Horovod's rendezvous, too
  std::optional<int> node_rank;                 ///< asked for
  std::string node_rank_from;                   ///< the origin of node_rank: '--node-rank', 'RANK'
  std::string host_from;                        ///< the origin of host: '--rdzv-endpoint', 'MASTER_ADDR'
  std::string port_option = "--rdzv-endpoint";  ///< the option that would set another port
  std::string local_addr;                       ///< where others reach us; empty: the route to the rendezvous decides
  bool of_ranks = false;                ///< each rank has a launcher; node ranks and numbers of nodes then count ranks
  bool shares_screen = false;           ///< people read in one place what all launchers print
  std::vector<std::string> hosts = {};  ///< by node rank; empty: not known
  int min_nodes = 1;
  int max_nodes = 1;
  int spares = 0;                     ///< launchers beyond max_nodes that take the place of lost ones
  Duration connect_timeout{600'000};  ///< to reach the rendezvous
  Duration name_timeout{10'000};   ///< for its host's name to exist, and with `is_up` for its host to take connections;
                                   ///< connect_timeout where it may appear later
  Duration etcd_start{10'000};     ///< for an etcd that refuses connections
  Duration join_timeout{600'000};  ///< for enough nodes
  Duration replacement{600'000};   ///< for replacements of lost nodes
  Duration last_call{1000};        ///< with enough nodes, for one more, since the last one joined
  Duration heartbeat{5000};        ///< a launcher that is silent for so long is lost

  bool operator==(const RendezvousPlan&) const = default;
};

/// The job cannot go on without any of its nodes, unless a lost one is replaced.
inline bool needs_all_nodes(const RendezvousPlan& plan) { return plan.min_nodes == plan.max_nodes && plan.spares == 0; }

}  // namespace lrun::launcher
