// Where launchers meet and where workers find their store. A LaunchRequest comes in; choose_master() fills the
// addresses of a LaunchPlan and its RendezvousPlan. make_plan() calls it. With several nodes the port of the workers'
// store is known later: JobServers::open_store() opens one, and that of node 0 counts.
#include "plan/master_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/numeric_address.h"
#include "base/user_error.h"
#include "base/whole_number.h"
#include "plan/horovod_environment.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"

namespace lrun::launcher {
namespace {

constexpr Duration kHeartbeatOfNeeded(15'000);

bool is_named(const std::string& host, const AllocatedNode& this_host) {
  return std::find(this_host.also_named.begin(), this_host.also_named.end(), host) != this_host.also_named.end();
}

bool is_here(const std::string& host, const AllocatedNode& this_host) {
  return !loopback_address_of(host).empty() || is_named(host, this_host);
}

/// The loopback address to listen on: a host without IPv6 has only 127.0.0.1.
std::string own_loopback(const std::string& host, const AllocatedNode& this_host) {
  const std::string address = loopback_address_of(host);
  return address != "::1" || is_named(host, this_host) ? address : "127.0.0.1";
}

void check_is_here(const std::string& written, const std::string& host, const AllocatedNode& this_host,
                   const std::string& hint) {
  if (host.empty() || is_here(host, this_host)) return;
  throw UserError("'" + written + "': '" + host + "' is not this machine, and this run has one node", hint);
}

/// torchrun ignores --master-port beside an endpoint, without a warning.
void warn_of_unused_port(const RendezvousRequest& request, const Setting<std::optional<int>>& master_port,
                         LaunchPlan& plan) {
  if (request.endpoint.value.host.empty()) return;
  const int fixed = master_port.value.value_or(0);
  const int port = port_of(request);
  if (fixed == 0 || fixed == port) return;
  plan.warnings.push_back("'" + as_written(master_port) + "' is not used: the port of '" +
                          as_written(request.endpoint) + "' is " + std::to_string(port));
}

void choose_own_store(const RendezvousRequest& request, const Setting<std::optional<int>>& master_port,
                      const AllocatedNode& this_host, LaunchPlan& plan) {
  const Endpoint& endpoint = request.endpoint.value;
  const std::string& origin = request.endpoint.origin;
  const bool names_endpoint = !endpoint.host.empty() && !request.uses_etcd();  // one node needs no etcd
  const bool names_store = names_endpoint && !endpoint_of_others(request);
  if (names_endpoint) {
    check_is_here(as_written(request.endpoint), endpoint.host, this_host,
                  "leave it out, or write '" + as_written(origin, "localhost:29400") + "'");
  }
  for (const Setting<std::string>* address : {&request.master_addr, &request.local_addr}) {
    check_is_here(as_written(*address), address->value, this_host,
                  "leave it out, or write '" + as_written(address->origin, "127.0.0.1") + "'");
  }
  const std::string named = own_loopback(names_store ? endpoint.host : request.master_addr.value, this_host);
  plan.master_addr = named.empty() ? "127.0.0.1" : named;
  if (request.local_addr.given()) plan.master_addr = request.local_addr.value;
  int port = master_port.value.value_or(0);
  if (names_endpoint && !names_store) {
    plan.warnings.emplace_back(
        "'--rdzv-conf is_host=false': this run has one node and leaves the endpoint alone; '--num-nodes' makes it a "
        "part of the job there");
  } else if (names_store) {
    port = port_of(request);
    warn_of_unused_port(request, master_port, plan);
    plan.any_port_will_do = request.backend.value == RendezvousBackend::kC10d;
  }
  if (port != 0) plan.master_port = port;
}

/// The endpoint of the rendezvous: --rdzv-endpoint, or --master-addr and --master-port. Its host may be empty.
Endpoint endpoint_of(const LaunchRequest& request) {
  const RendezvousRequest& rendezvous = request.rendezvous;
  if (!rendezvous.endpoint.value.host.empty()) return {rendezvous.endpoint.value.host, port_of(rendezvous)};
  if (rendezvous.uses_etcd()) return {"", kPortOfEtcd};
  const bool c10d = rendezvous.backend.value == RendezvousBackend::kC10d;
  const int port = c10d ? kPortOfC10d : request.master_port.value.value_or(kPortOfStatic);
  return {rendezvous.master_addr.value, port};
}

/// The other nodes cannot know a port that the kernel chooses on one. torchrun accepts it for a job that may begin
/// alone.
void check_port_is_known(const LaunchRequest& request, int port) {
  const bool may_be_alone = request.compat == Compat::kTorchrun && request.min_nodes == 1;
  if (port != 0 || may_be_alone) return;
  const Setting<Endpoint>& endpoint = request.rendezvous.endpoint;
  const bool by_endpoint = !endpoint.value.host.empty();
  const std::string written = by_endpoint ? as_written(endpoint) : as_written(request.master_port.origin, "0");
  const std::string better = by_endpoint
                                 ? as_written(endpoint.origin, text_of(Endpoint{endpoint.value.host, kPortOfC10d}))
                                 : as_written(request.master_port.origin, std::to_string(kPortOfStatic));
  throw UserError("'" + written + "': with several nodes the port has to be fixed",
                  "write '" + better + "' on every node");
}

RendezvousPlan::Hosting hosting_of(const RendezvousRequest& request, const std::string& host,
                                   const AllocatedNode& this_host) {
  using Hosting = RendezvousPlan::Hosting;
  if (request.is_host) return *request.is_host ? Hosting::kMust : Hosting::kNever;
  if (request.backend.value == RendezvousBackend::kStatic && request.node_rank.given()) {
    const int place = request.task ? request.task->rank : request.node_rank.value;
    return place == 0 ? Hosting::kMust : Hosting::kNever;
  }
  return is_here(host, this_host) ? Hosting::kIfFree : Hosting::kNever;
}

/// Managers give node rank 0 to the host that they name, and the name of a service is that of no pod.
bool may_be_elsewhere(const RendezvousRequest& request, const std::string& host, const AllocatedNode& this_host) {
  const bool is_first = request.node_rank.given() && request.node_rank.value == 0 && !request.task;
  const bool by_person = request.node_rank.source != Source::kScheduler && request.listener < 0 && !this_host.is_pod;
  return is_first && by_person && !host.empty() && !is_here(host, this_host);
}

void choose_tls(const RendezvousRequest& request, RendezvousPlan& rendezvous, LaunchPlan& plan) {
  const EtcdTls& files = request.etcd_tls;
  if (!files.key.empty() && files.certificate.empty()) {
    throw UserError("'--rdzv-conf key=" + files.key + "': the certificate for this key is missing",
                    "name both, as in 'protocol=https,cert=client.pem,key=client.key'");
  }
  if (request.etcd_is_asked_over_tls) {
    rendezvous.etcd_tls = files;
  } else if (files != EtcdTls()) {
    plan.warnings.emplace_back(
        "the certificates in '--rdzv-conf' are not used: lrun uses plain http for etcd without 'protocol=https'");
  }
}

/// One etcd serves many jobs and tells them apart by their names. torchrun's 'none' is a name, too.
void choose_etcd(const RendezvousRequest& request, RendezvousPlan& rendezvous, LaunchPlan& plan) {
  if (plan.run_name == plan.run_id) {
    throw UserError("'" + as_written(request.backend) + "': a rendezvous through etcd needs a name of the job",
                    "give the same one on every node, such as '--rdzv-id my-job'");
  }
  if (request.is_host)
    plan.warnings.emplace_back("'--rdzv-conf is_host' is not used: etcd elects the launcher that hosts the rendezvous");
  constexpr Duration kSilence(30'000);
  rendezvous.backend = RendezvousBackend::kEtcd;
  rendezvous.connect_timeout = std::min(rendezvous.join_timeout, request.connect_timeout.value_or(kSilence));
  rendezvous.etcd_start = std::min(rendezvous.join_timeout, request.connect_timeout.value_or(rendezvous.etcd_start));
  rendezvous.etcd.push_back({rendezvous.host, rendezvous.port});
  for (const Endpoint& endpoint : request.more_endpoints) {
    rendezvous.etcd.push_back({endpoint.host, endpoint.port.value_or(kPortOfEtcd)});
  }
  choose_tls(request, rendezvous, plan);
  rendezvous.etcd_folder = request.etcd_prefix + "/" + plan.run_name;
  rendezvous.hosting = RendezvousPlan::Hosting::kNever;
}

/// Only the members of an etcd can be asked in turn.
void check_endpoints(const RendezvousRequest& request) {
  if (request.more_endpoints.empty() || request.uses_etcd()) return;
  throw UserError("'" + request.endpoint.origin + "' names several endpoints, and the backend is '" +
                      text_of(request.backend.value) + "'",
                  "write one, or '--rdzv-backend etcd' where they are members of an etcd");
}

/// Behind NAT, and with the published port of a container, such an address may be right.
void warn_of_foreign_address(const Setting<std::string>& local_addr, const AllocatedNode& this_host, LaunchPlan& plan) {
  if (local_addr.value.empty() || is_here(local_addr.value, this_host)) return;
  plan.warnings.push_back("'" + as_written(local_addr) + "' is not an address of '" + this_host.name +
                          "': other nodes reach this one there only if something forwards them");
}

void choose_rendezvous(const LaunchRequest& request, const AllocatedNode& this_host, LaunchPlan& plan) {
  const RendezvousRequest& asked = request.rendezvous;
  RendezvousPlan rendezvous;
  const Endpoint place = endpoint_of(request);
  check_port_is_known(request, place.port.value_or(0));
  warn_of_unused_port(asked, request.master_port, plan);
  const std::string loopback = asked.uses_etcd() ? std::string() : own_loopback(place.host, this_host);
  rendezvous.host = loopback.empty() || place.host == "localhost" ? place.host : loopback;
  rendezvous.port = place.port.value_or(0);
  rendezvous.listener = asked.listener;
  rendezvous.is_up = asked.is_up;
  rendezvous.backend = asked.backend.value;
  rendezvous.hosting = hosting_of(asked, rendezvous.host, this_host);
  rendezvous.may_be_elsewhere =
      rendezvous.hosting == RendezvousPlan::Hosting::kMust && may_be_elsewhere(asked, rendezvous.host, this_host);
  rendezvous.leaves_endpoint = asked.is_host == false && !asked.uses_etcd();
  rendezvous.workers_use_endpoint = rendezvous.backend == RendezvousBackend::kStatic;
  rendezvous.rank_0_hosts_store = plan.rank_0_hosts_store;
  rendezvous.serves_horovod = is_horovod(plan);
  if (asked.node_rank.given()) rendezvous.node_rank = asked.task ? asked.task->rank : asked.node_rank.value;
  rendezvous.of_ranks = asked.task.has_value();
  rendezvous.shares_screen = asked.shares_screen;
  rendezvous.hosts = asked.hosts;
  rendezvous.node_rank_from = asked.node_rank.origin;
  rendezvous.host_from = asked.endpoint.given() ? asked.endpoint.origin : asked.master_addr.origin;
  const bool by_endpoint = asked.endpoint.given() && asked.endpoint.source != Source::kScheduler;
  if (!by_endpoint && rendezvous.backend == RendezvousBackend::kStatic) rendezvous.port_option = "--master-port";
  rendezvous.local_addr = asked.local_addr.value;
  warn_of_foreign_address(asked.local_addr, this_host, plan);
  rendezvous.max_nodes = asked.task ? asked.task->ranks : plan.num_nodes;
  rendezvous.min_nodes = request.min_nodes == 0 ? rendezvous.max_nodes : request.min_nodes;
  rendezvous.spares = request.spares.value;
  rendezvous.join_timeout = asked.join_timeout.value_or(rendezvous.join_timeout);
  // Only nodes of a manager's job can join it, and a lost node comes back only where the manager starts it again.
  const bool by_manager = asked.endpoint.source == Source::kScheduler || request.num_nodes.source == Source::kScheduler;
  const bool is_fixed = by_manager && !asked.manager_replaces_nodes;
  const bool is_managed = is_fixed && !asked.join_timeout;
  rendezvous.replacement = is_managed ? Duration::zero() : rendezvous.join_timeout;
  rendezvous.connect_timeout =
      std::min(rendezvous.join_timeout, asked.connect_timeout.value_or(rendezvous.join_timeout));
  // In a cluster's job, and between pods, the name of a host exists once that has started.
  const bool appears_later = by_manager || asked.manager_replaces_nodes || this_host.is_pod || asked.join_timeout;
  constexpr Duration kOfOneThatIsUp(3000);
  if (appears_later || asked.connect_timeout) rendezvous.name_timeout = rendezvous.connect_timeout;
  if (rendezvous.is_up) rendezvous.name_timeout = std::min(rendezvous.connect_timeout, kOfOneThatIsUp);
  rendezvous.last_call = asked.last_call.value_or(rendezvous.last_call);
  // A lost node that nobody can replace ends the job, which a machine that only pauses is not to do.
  const bool ends_job = needs_all_nodes(rendezvous) && rendezvous.replacement == Duration::zero();
  rendezvous.heartbeat = asked.heartbeat.value_or(ends_job ? kHeartbeatOfNeeded : rendezvous.heartbeat);
  if (asked.uses_etcd()) choose_etcd(asked, rendezvous, plan);
  plan.rendezvous = std::move(rendezvous);
}

}  // namespace

void choose_master(const LaunchRequest& request, const AllocatedNode& this_host, LaunchPlan& plan) {
  const std::vector<std::string>& warnings = request.rendezvous.warnings;
  plan.warnings.insert(plan.warnings.end(), warnings.begin(), warnings.end());
  if (const Setting<int>& rank = request.rendezvous.node_rank; rank.value >= plan.num_nodes + request.spares.value) {
    throw UserError("'" + as_written(rank) + "': there is no such node",
                    plan.num_nodes == 1 ? "this run has one node: for two write '--num-nodes 2' on both"
                                        : "this run has the node ranks 0 to " + std::to_string(plan.num_nodes - 1));
  }
  check_endpoints(request.rendezvous);
  if (plan.num_nodes > 1 || request.rendezvous.task || request.spares.value > 0)
    return choose_rendezvous(request, this_host, plan);
  choose_own_store(request.rendezvous, request.master_port, this_host, plan);
}

void require_endpoint(const LaunchPlan& plan, const LaunchRequest& request, const Environment& environment) {
  if (!plan.rendezvous || !plan.rendezvous->host.empty()) return;
  if (!plan.rendezvous->etcd.empty()) {
    throw UserError("'--rdzv-backend etcd': no endpoint of etcd",
                    "on every node, write '--rdzv-endpoint HOST:2379' with one or more of its members, with commas");
  }
  const std::string named = environment.get("MASTER_ADDR").value_or("");
  const std::string typed = environment.get("MASTER_PORT").value_or("");
  const auto port = whole_number<int>(typed);  // Kubernetes sets 'tcp://…' for a service
  const bool is_port = port && *port > 0 && *port <= kMostPort;
  const std::string given = named + ":" + std::to_string(is_port ? *port : kPortOfStatic);
  const Source source = request.num_nodes.source;
  const bool is_on_line = source != Source::kConfig && source != Source::kEnvironment;
  throw UserError(
      "no rendezvous endpoint for " + std::to_string(plan.num_nodes) + " nodes" +
          (is_on_line ? "" : ", which '" + request.num_nodes.origin + "' asks for"),
      source == Source::kEnvironment && named.empty()
          ? fmt::format("'unset {}' for one node; else, on every node, write '--rdzv-endpoint HOST:29500'",
                        request.num_nodes.origin)
      : named.empty()
          ? fmt::format(
                "for {0} workers on this host write '-n {0}'; else, on every node, '--rdzv-endpoint HOST:29500' "
                "with the name of one",
                plan.world_size)
          : "on every node, write '--rdzv-endpoint " + given + "', as MASTER_ADDR" +
                (is_port ? " and MASTER_PORT name it" : " names it"));
}

}  // namespace lrun::launcher
