#include "simulated_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "coordinator_harness.h"

namespace lrun::test {

Cluster::Cluster(unsigned seed, int launchers, int least) : random_(seed) {
  for (int i = 0; i < launchers; ++i) {
    Launcher launcher;
    launcher.record = node_at("10.0.0." + std::to_string(i + 1));
    launcher.record.min_nodes = least;
    launcher.record.max_nodes = launchers;
    launcher.record.standby_port = 7000 + i;
    launchers_.push_back(std::move(launcher));
  }
  cut_.assign(launchers_.size(), std::vector<bool>(launchers_.size(), false));
}

void Cluster::start(int index) {
  Launcher& launcher = at(index);
  launcher.alive = true;
  if (index != 0) return;
  open_rendezvous(launcher, kEndpoint);
  begun_at_endpoint_ = false;
  could_look_since_.reset();
}

void Cluster::start_again(int index) {
  constexpr int kPorts = 100;
  Launcher& launcher = at(index);
  if (launcher.alive || launcher.off) return;
  JoinRecord record = launcher.record;
  record.token += kMark;
  record.node += kMark;
  record.standby_port += kPorts;
  launcher = Launcher{.record = std::move(record)};
  is_first_life_ = is_first_life_ && index != 0;
  start(index);
}

void Cluster::kill(int index, bool power) {
  Launcher& launcher = at(index);
  if (!launcher.alive) return;
  launcher.off = power;
  launcher.alive = launcher.running = false;
  for (Connection& connection : connections_) {
    if (connection.client == index) end(connection.up, connection.client_open, power);
    if (connection.server == index) end(connection.down, connection.server_open, power);
  }
  launcher.coordinators.clear();
  launcher.holds = 0;
  launcher.link = launcher.invitation = nullptr;
}

void Cluster::go_on(int index) {
  if (!std::exchange(at(index).stopped, false)) return;
  together_ = now_;
  for (Connection& connection : connections_) {
    if (connection.client == index) connection.heard_by_client = now_;
    if (connection.server == index) connection.heard_by_server = now_;
  }
}

void Cluster::heal() {
  for (auto& row : cut_) row.assign(row.size(), false);
}

void Cluster::pass(Duration time) {
  for (const SteadyTime end = now_ + time; now_ < end && !::testing::Test::HasFailure();) {
    now_ += Duration(draw(20, static_cast<int>(kLongestTick.count())));
    std::vector<int> order;
    for (int i = 0; i < count(); ++i) order.push_back(i);
    std::shuffle(order.begin(), order.end(), random_);
    for (const int index : order) {
      if (at(index).alive && !at(index).stopped) act(index);
    }
    watch_endpoint();
    expect_one_job();
    connections_.remove_if([](const Connection& each) { return !each.client_open && !each.server_open; });
  }
}

int Cluster::running() const {
  return static_cast<int>(
      std::count_if(launchers_.begin(), launchers_.end(), [](const auto& each) { return each.running; }));
}

void Cluster::expect_everybody_decided() const {
  for (const Launcher& launcher : launchers_) {
    if (launcher.alive && launcher.membership && !launcher.waits) {
      EXPECT_TRUE(launcher.running) << launcher.record.node << " neither runs nor ends";
    }
  }
}

/// Whether a launcher gets an answer from a rendezvous there.
bool Cluster::answers(const Place& place, int whom) const {
  const Launcher& other = launcher(place.launcher);
  return other.alive && !other.stopped && other.coordinators.count(place.port) != 0 && reaches(whom, place.launcher);
}

/// Whether its host says that nobody listens there.
bool Cluster::refuses(const Place& place, int whom) const {
  const Launcher& other = launcher(place.launcher);
  const bool listens =
      other.alive && (other.coordinators.count(place.port) != 0 || other.record.standby_port == place.port);
  return !listens && !other.off && reaches(whom, place.launcher);
}

Place Cluster::place_of(const RendezvousAddress& place) const {
  int index = 0;
  while (launcher(index).record.address != place.address) ++index;
  return {index, place.port};
}

int Cluster::launcher_named(const std::string& name) const {
  const auto host_of = [](const std::string& node) { return node.substr(0, node.find(kMark)); };
  int index = 0;
  while (host_of(launcher(index).record.node) != host_of(name)) ++index;
  return index;
}

Coordinator& Cluster::open_rendezvous(Launcher& launcher, int port) {
  const RendezvousTimes times{
      .join = std::chrono::seconds(600), .replacement = kHeartbeat, .last_call = kLastCall, .heartbeat = kHeartbeat};
  const Coordinator::Options options{
      .times = times, .merge = joined, .own_token = launcher.record.token, .members_elect_leader = true};
  launcher.holds = port;
  return launcher.coordinators.insert_or_assign(port, Coordinator(options, now_)).first->second;
}

/// Messages that the other end has not taken yet may go with the process.
void Cluster::end(Wire& wire, bool& open, bool power) {
  if (!std::exchange(open, false) || power) return;
  if (!wire.messages.empty() && draw(0, 1) == 0) {
    wire.messages.resize(static_cast<std::size_t>(draw(0, static_cast<int>(wire.messages.size()))));
  }
  wire.ended = true;
}

/// A job that begins at the endpoint although another one could look there long enough must not be.
void Cluster::watch_endpoint() {
  bool can_look = false;
  for (int i = 0; i < count(); ++i) can_look = can_look || can_look_at_endpoint(launcher(i), i);
  const auto coordinator = launcher(0).coordinators.find(kEndpoint);
  const bool begun = coordinator != launcher(0).coordinators.end() && coordinator->second.rounds_begun() > 0;
  if (begun && !std::exchange(begun_at_endpoint_, true) && !is_first_life_) {
    EXPECT_FALSE(could_look_since_ && now_ - *could_look_since_ > kLongestLook)
        << "a second job has begun at the endpoint";
    const bool beside = std::any_of(launchers_.begin() + 1, launchers_.end(), [this](const Launcher& other) {
      return other.alive && other.membership && other.membership->leader_name != launcher(0).record.node;
    });
    if (beside) ++second_jobs_;
  }
  if (!can_look) return could_look_since_.reset();
  if (!could_look_since_) could_look_since_ = now_;
}

int Cluster::jobs() const {
  std::set<std::pair<int, std::string>> jobs;
  for (const Launcher& launcher : launchers_) {
    if (launcher.running && !launcher.stopped) {
      jobs.emplace(launcher.membership->round, launcher.membership->leader_name);
    }
  }
  return static_cast<int>(jobs.size());
}

void Cluster::expect_one_job() {
  if (jobs() < 2 || second_jobs_ > 0) together_ = now_;
  EXPECT_LT(now_ - together_, kLongestOverlap) << "two jobs";
}

}  // namespace lrun::test
