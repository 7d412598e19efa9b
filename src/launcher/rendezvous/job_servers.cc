// In: the plan of a job, and whether this launcher leads. Out: servers at ports of this node, and a JoinRecord that
// carries the ports to the others. Called by Job and by the states of a job.
#include "rendezvous/job_servers.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "rendezvous/bind_address.h"

namespace lrun::launcher {

JobServers::JobServers(EventLoop& loop, Options options)
    : loop_(loop),
      options_(std::move(options)),
      reach_(reach_of(options_.plan)),
      address_(bind_address_of(options_.plan)) {
  const RendezvousPlan& plan = options_.plan;
  JoinRecord& record = options_.record;
  serve_if_ours();
  owns_endpoint_ = rendezvous_ != nullptr;
  if (!owns_endpoint_ && plan.etcd.empty() && plan.max_nodes > 1) open_standby();
  store_is_rendezvous_ = owns_endpoint_ && plan.workers_use_endpoint;
  is_open_to_network_ = (owns_endpoint_ || !plan.etcd.empty()) && reach_ == StoreReach::kNetwork;
  // Others must not try an address at which nothing of ours listens.
  if (record.address.empty()) record.address = address_;
  rank_is_by_default_ = store_is_rendezvous_ && !record.node_rank;
  // torchrun's static backend has the master on node 0, and the master is at the endpoint.
  if (rank_is_by_default_) record.node_rank = 0;
  // A new store must not be emptied: that would close connections of launchers that wait at a listener handed to this
  // one.
  if (store_is_rendezvous_) {
    record.store_port = rendezvous_->server().port();
  } else {
    open_store();
  }
}

std::string JobServers::open_place() const {
  if (!is_open_to_network_) return {};
  if (!owns_endpoint_) return "lrun's ports on " + options_.record.node;  // of a leader that etcd elects
  return text_of(Endpoint{options_.plan.host, rendezvous_->server().port()});
}

void JobServers::serve_if_ours() {
  const RendezvousPlan& plan = options_.plan;
  if (plan.hosting == RendezvousPlan::Hosting::kNever) return;
  try {
    serve(plan.port, plan.listener, false);
  } catch (const std::system_error& error) {
    const bool is_taken = error.code().value() == EADDRINUSE;
    if (!is_taken || plan.hosting == RendezvousPlan::Hosting::kMust) throw;
    // Another launcher on this machine was first.
  }
}

std::size_t JobServers::most_launchers(const RendezvousPlan& plan) {
  constexpr std::size_t kForeign = 64;
  // Each node's, and once more for those that connect again.
  return 2 * static_cast<std::size_t>(plan.max_nodes + plan.spares) + kForeign;
}

void JobServers::serve(int port, int listener, bool is_failover) {
  const RendezvousPlan& plan = options_.plan;
  // Spares look for the next leader only now.
  const Duration for_spares = is_failover && plan.spares > 0 ? RendezvousTimes().for_spares : Duration::zero();
  RendezvousServer::Options options{.port = static_cast<std::uint16_t>(port),
                                    .listener = listener,
                                    .reach = reach_,
                                    .address = address_,
                                    .times = {.join = plan.join_timeout,
                                              .replacement = std::max(plan.replacement, for_spares),
                                              .last_call = plan.last_call,
                                              .heartbeat = plan.heartbeat,
                                              .spares = plan.spares},
                                    .merge = options_.merge,
                                    .max_store_connections = options_.max_store_connections,
                                    .serves_horovod = plan.serves_horovod,
                                    .max_launchers = most_launchers(plan),
                                    .own_token = options_.record.token,
                                    .hosts = plan.hosts,
                                    .secret = options_.secret,
                                    .members_elect_leader = plan.etcd.empty(),
                                    .rejected = options_.rejected};
  if (!plan.etcd.empty()) options.begun = options_.begun;
  rendezvous_ = std::make_unique<RendezvousServer>(loop_, options);
}

void JobServers::lead_from_standby() { serve(options_.record.standby_port, standby_.release(), true); }

void JobServers::abandon() {
  if (handed_away_) handed_away_->abandon();
  // Workers that are still there may use the store.
  abandoned_ = std::move(rendezvous_);
  abandoned_->abandon();
}

void JobServers::open_standby() {
  standby_ = open_listening_socket(reach_, 0, address_);
  options_.record.standby_port = port_of_socket(standby_.get());
}

void JobServers::hand_away() {
  handed_away_ = std::move(rendezvous_);
  open_standby();
  if (rank_is_by_default_) options_.record.node_rank.reset();
  if (std::exchange(store_is_rendezvous_, false)) open_store();
}

void JobServers::serve_again() {
  rendezvous_ = std::move(handed_away_);
  rendezvous_->redirect_to(std::nullopt);
  standby_.reset();
  options_.record.standby_port = 0;
  if (rank_is_by_default_) options_.record.node_rank = 0;
  store_is_rendezvous_ = options_.plan.workers_use_endpoint;
  open_store();
}

std::optional<RendezvousAddress> JobServers::redirect() const {
  return handed_away_ ? handed_away_->redirect() : std::nullopt;
}

void JobServers::redirect_to(const RendezvousAddress& target) {
  if (handed_away_) handed_away_->redirect_to(target);
}

void JobServers::open_store() {
  if (store_is_rendezvous_) {
    // The user fixed the port: the socket stays, and only the contents of the store go.
    store_.reset();
    rendezvous_->server().reset();
    options_.record.store_port = rendezvous_->server().port();
    return;
  }
  store_ = std::make_unique<StoreServer>(loop_, StoreServerOptions{.reach = reach_,
                                                                   .address = address_,
                                                                   .only_keeps_port = options_.plan.rank_0_hosts_store,
                                                                   .max_connections = options_.max_store_connections,
                                                                   .serves_horovod = options_.plan.serves_horovod});
  options_.record.store_port = store_->port();
}

StoreServer* JobServers::store_for(const Membership& membership) {
  if (membership.self.node_rank != 0) {
    store_.reset();
    return nullptr;
  }
  return store_ ? store_.get() : &rendezvous_->server();
}

void JobServers::report_rejections() {
  if (rendezvous_) rendezvous_->report_rejections();
}

}  // namespace lrun::launcher
