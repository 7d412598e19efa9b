// In: the plan, and for a job its membership in each round. Out: a StoreServer that listens, and which workers have
// connected. run_node() makes one.
#include "run/workers_store.h"

#include <utility>

#include "plan/horovod_environment.h"
#include "rendezvous/handshake.h"
#include "store/send_buffer.h"

namespace lrun::launcher {

/// On one node the store listens on the loopback address only, unless --local-addr names another one.
WorkersStore::WorkersStore(EventLoop& loop, const LaunchPlan& plan, std::size_t most_connections) : plan_(plan) {
  StoreServerOptions options{.port = static_cast<std::uint16_t>(plan_.master_port.value_or(0)),
                             .any_port_will_do = plan_.any_port_will_do,
                             .only_keeps_port = plan_.rank_0_hosts_store,
                             .max_connections = most_connections,
                             .foreign_byte = kLauncherProtocol.front(),
                             .foreign = [this](const Fd& launcher, const std::string&) { reject(launcher); },
                             .serves_horovod = is_horovod(plan_)};
  const std::string& address = plan_.master_addr;
  const bool numeric =
      address.find_first_not_of("0123456789.") == std::string::npos || address.find(':') != address.npos;
  if (numeric) options.address = address;
  if (!numeric && address != "localhost") options.reach = StoreReach::kNetwork;
  own_.emplace(loop, std::move(options));
  server_ = &*own_;
}

WorkersStore::WorkersStore(const LaunchPlan& plan, OfRound of_round) : plan_(plan), of_round_(std::move(of_round)) {}

/// The job, and its store with it, may go on for the other nodes.
WorkersStore::~WorkersStore() {
  if (server_ != nullptr) server_->set_listeners({}, {});
}

void WorkersStore::set_listeners(std::function<void(const std::string& line)> warn,
                                 std::function<void(pid_t pid)> connected) {
  warn_ = std::move(warn);
  connected_ = std::move(connected);
  listen();
}

void WorkersStore::listen() {
  if (server_ == nullptr) return;
  StoreRunLook look{.has_user = [this](uid_t user) { return processes_.has_user(user); }};
  // With a launcher for each rank most workers of this host are below others.
  if (!plan_.is_of_one_rank) look.sockets = [this] { return processes_.sockets(); };
  server_->set_listeners(warn_, connected_, std::move(look));
}

void WorkersStore::enter(const Membership& membership) {
  if (!of_round_) return;
  server_ = of_round_(membership);
  listen();
}

void WorkersStore::leave() {
  if (own_) return own_->reset();
  if (server_ != nullptr) std::exchange(server_, nullptr)->set_listeners({}, {});  // it may outlive us
}

/// A launcher may connect by mistake: one of another job, or of this one without its '--num-nodes'.
void WorkersStore::reject(const Fd& launcher) const {
  SendBuffer answer;
  answer.tail() = lone_job_handshake(plan_.run_name == plan_.run_id ? "" : plan_.run_name);
  (void)answer.send_to(launcher.get());
}

std::vector<int> WorkersStore::ranks_unseen_by_horovod(int world_size) const {
  if (server_ == nullptr || server_->horovod() == nullptr) return {};
  std::vector<int> missing;
  for (int rank = 0; rank < world_size; ++rank) {
    if (!server_->horovod()->ranks_seen().contains(rank)) missing.push_back(rank);
  }
  return missing;
}

void WorkersStore::report_refusals() {
  if (server_ != nullptr) server_->log_counted_refusals();
}

}  // namespace lrun::launcher
