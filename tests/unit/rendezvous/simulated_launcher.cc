// What one launcher of a simulated cluster does.
#include <gtest/gtest.h>

#include <utility>

#include "coordinator_harness.h"
#include "simulated_cluster.h"

namespace lrun::test {

void Cluster::act(int index) {
  hold(index);
  look_at_endpoint(index);
  if (at(index).invitation != nullptr) hear_of_endpoint(index);
  if (at(index).link == nullptr && !at(index).step) find_leader(index);
  if (at(index).alive && at(index).step) take_step(index);
  if (at(index).alive && at(index).link != nullptr) listen(index);
}

/// A newcomer that was not redirected knows the endpoint only.
void Cluster::find_leader(int index) {
  Launcher& launcher = at(index);
  if (launcher.sent_to) {
    if (answers(*launcher.sent_to, index)) return join(index, *launcher.sent_to);
    if (refuses(*launcher.sent_to, index) || now_ - launcher.asked >= 2 * kHeartbeat) ask_endpoint_again(index, false);
  } else if (!launcher.line.empty()) {
    follow_as_spare(index);
  } else if (!launcher.membership && answers({}, index)) {
    join(index, {});
  }
}

/// As Redirected::ask_endpoint_again().
void Cluster::ask_endpoint_again(int index, bool nothing_came_of_it) {
  Launcher& launcher = at(index);
  launcher.asked = now_;
  const auto redirecting = launcher.coordinators.find(kEndpoint);
  if (launcher.membership) return leave(index);
  if (redirecting == launcher.coordinators.end() || !launcher.line.empty()) return launcher.sent_to.reset();
  const Place place = place_of(*redirecting->second.redirect());
  if (place != *launcher.sent_to) {
    launcher.sent_to = place;
  } else if (nothing_came_of_it || refuses(place, index)) {
    gather_here(index);
  } else {
    leave(index);
  }
}

/// As Redirected::gather_here() and RendezvousServer::redirect_to().
void Cluster::gather_here(int index) {
  Launcher& launcher = at(index);
  for (Connection& connection : connections_) {
    if (connection.server == index && connection.invites) end(connection.down, connection.server_open, false);
  }
  launcher.sent_to.reset();
  launcher.waits = false;
  launcher.coordinators.at(kEndpoint).redirect_to(std::nullopt, now_);
  launcher.holds = kEndpoint;
}

void Cluster::follow_as_spare(int index) {
  Launcher& launcher = at(index);
  const Place place = launcher.line.at(launcher.turned_to % launcher.line.size());
  if (answers(place, index)) return join(index, place);
  if (now_ - launcher.asked >= 8 * kHeartbeat) return leave(index);
  ++launcher.turned_to;
}

Connection* Cluster::connect(int client, const Place& server, LauncherMessage first) {
  connections_.push_back({.client = client, .server = server.launcher, .port = server.port, .id = ++last_id_});
  Connection& connection = connections_.back();
  connection.heard_by_client = connection.heard_by_server = connection.beaten = now_;
  connection.up.messages.push_back(std::move(first));
  return &connection;
}

void Cluster::join(int index, const Place& place) {
  Launcher& launcher = at(index);
  LauncherMessage message{.kind = Kind::kJoin, .join = launcher.record};
  message.was_spare = !launcher.membership && launcher.waits;
  message.resumes = launcher.membership.has_value();
  if (launcher.membership) message.round = launcher.membership->round;
  if (launcher.search) message.node_rank = launcher.membership->self.node_rank;
  launcher.link = connect(index, place, std::move(message));
  launcher.said_ready = false;
  for (auto& [port, coordinator] : launcher.coordinators) {
    if (!coordinator.redirect()) continue;
    coordinator.redirect_to(RendezvousAddress{this->launcher(place.launcher).record.address, place.port}, now_);
  }
}

void Cluster::hold(int index) {
  std::vector<int> ports;
  for (const auto& [port, coordinator] : at(index).coordinators) ports.push_back(port);
  for (const int port : ports) hold(index, port);
}

void Cluster::hold(int index, int port) {
  Coordinator& coordinator = at(index).coordinators.at(port);
  for (Connection& connection : connections_) {
    if (connection.server != index || connection.port != port || !connection.server_open) continue;
    if (hears(index, connection.client)) take_from(connection, coordinator);
    if (connection.server_open && now_ - connection.heard_by_server >= kHeartbeat) {
      connection.server_open = false;
      connection.down.messages.push_back({.kind = Kind::kRejected});
      connection.down.ended = true;
      coordinator.left(connection.id, "silence", now_, now_, true);
    }
    send(index, port);
  }
  coordinator.advance(now_);
  send(index, port);
}

/// An invitation comes at once: it is its time that is looked at.
void Cluster::take_from(Connection& connection, Coordinator& coordinator) {
  while (!connection.up.messages.empty() && connection.server_open && (connection.invites || draw(0, 9) != 0)) {
    const LauncherMessage message = connection.up.messages.front();
    connection.up.messages.pop_front();
    connection.heard_by_server = now_;
    if (message.kind == Kind::kHeartbeat) {
      connection.down.messages.push_back({.kind = Kind::kHeartbeatAck});
    } else {
      coordinator.received(connection.id, message, now_);
      send(connection.server, connection.port);
    }
  }
  if (!connection.up.messages.empty() || !connection.up.ended || !connection.server_open) return;
  connection.server_open = false;
  connection.down.ended = true;
  coordinator.left(connection.id, "closed", now_, now_, false);
}

void Cluster::send(int index, int port) {
  for (const Told& send : one_by_one(at(index).coordinators.at(port).outbox().take_messages())) {
    for (Connection& connection : connections_) {
      if (connection.id != send.to || !connection.server_open) continue;
      connection.down.messages.push_back(send.message);
      if (!send.last) continue;
      connection.server_open = false;
      connection.down.ended = true;
    }
  }
}

bool Cluster::can_look_at_endpoint(const Launcher& launcher, int index) const {
  return launcher.alive && !launcher.stopped && index != 0 && launcher.holds != 0 && answers({}, index);
}

/// As EndpointWatch.
void Cluster::look_at_endpoint(int index) {
  Launcher& launcher = at(index);
  if (launcher.holds == 0 || launcher.invitation != nullptr || now_ - launcher.looked < kLook) return;
  launcher.looked = now_;
  if (!can_look_at_endpoint(launcher, index)) return;
  launcher.invitation = connect(index, {}, {.kind = Kind::kInvite, .join = launcher.record});
  launcher.invitation->invites = true;
}

/// As JobContext::endpoint_answered().
void Cluster::hear_of_endpoint(int index) {
  Launcher& launcher = at(index);
  Connection& link = *launcher.invitation;
  send_heartbeat(link);
  while (hears(index, link.server) && !link.down.messages.empty()) {
    const LauncherMessage message = link.down.messages.front();
    link.down.messages.pop_front();
    link.heard_by_client = now_;
    if (message.kind != Kind::kHasBegun || launcher.holds == 0) continue;
    Coordinator& coordinator = launcher.coordinators.at(launcher.holds);
    if (coordinator.rounds_begun() > 0) continue;
    coordinator.redirect_to(RendezvousAddress{this->launcher(0).record.address, kEndpoint}, now_);
  }
  const bool ended = hears(index, link.server) && link.down.messages.empty() && link.down.ended;
  if (!ended && now_ - link.heard_by_client < kHeartbeat && launcher.holds != 0) return;
  link.client_open = false;
  link.up.ended = true;
  launcher.invitation = nullptr;
}

void Cluster::send_heartbeat(Connection& link) {
  if (now_ - link.beaten < kHeartbeat / 4) return;
  link.up.messages.push_back({.kind = Kind::kHeartbeat});
  link.beaten = now_;
}

void Cluster::listen(int index) {
  Connection& link = *at(index).link;
  send_heartbeat(link);
  while (hears(index, link.server) && !link.down.messages.empty() && at(index).link == &link && draw(0, 9) != 0) {
    const LauncherMessage message = link.down.messages.front();
    link.down.messages.pop_front();
    link.heard_by_client = now_;
    take(index, message);
  }
  if (at(index).link != &link) return;
  if (hears(index, link.server) && link.down.messages.empty() && link.down.ended) return lose_link(index, true);
  if (now_ - link.heard_by_client >= kHeartbeat) {
    link.up.messages.push_back({.kind = Kind::kLeaderless});
    lose_link(index, false);
  } else if (at(index).leaderless && draw(0, 2) == 0 && !std::exchange(at(index).said_ready, true)) {
    say(index, Kind::kReady, at(index).membership->round + 1);
  }
}

void Cluster::take(int index, const LauncherMessage& message) {
  Launcher& launcher = at(index);
  switch (message.kind) {
    case Kind::kBegin:
      launcher.membership = *message.membership;
      launcher.known_to_all = message.known_to_all;
      launcher.search.reset();
      launcher.sent_to.reset();
      launcher.line.clear();
      launcher.leaderless = launcher.waits = false;
      launcher.running = true;
      if (!launcher.known_to_all) say(index, Kind::kBegun, message.round);
      return;
    case Kind::kKnownToAll:
      launcher.known_to_all = launcher.known_to_all || message.round == launcher.membership->round;
      return;
    case Kind::kSpare:
      launcher.waits = true;
      if (launcher.membership) return;
      launcher.line.clear();
      launcher.turned_to = 0;
      if (!message.successors.empty()) launcher.sent_to.reset();
      if (!message.successors.empty()) launcher.line.push_back({launcher.link->server, launcher.link->port});
      for (const Successor& successor : message.successors) {
        launcher.line.push_back({launcher_named(successor.name), successor.standby_port});
      }
      return;
    case Kind::kLost:
    case Kind::kResize:
    case Kind::kStop:
      if (std::exchange(launcher.running, false)) say(index, Kind::kReport, launcher.membership->round);
      return;
    case Kind::kOver:
      return say(index, Kind::kReady, message.round + 1);
    case Kind::kRedirect:
      return redirect(index, place_of({message.address, message.port}));
    case Kind::kNoRendezvous:
      if (launcher.membership || !launcher.sent_to || !launcher.line.empty()) return leave(index);
      close_link(index);
      return ask_endpoint_again(index, true);
    case Kind::kRejected:
    case Kind::kEnded:
      return leave(index);
    default:
      return;
  }
}

/// As Redirected::redirected().
void Cluster::redirect(int index, const Place& place) {
  Launcher& launcher = at(index);
  if (launcher.membership && !launcher.leaderless) return;
  close_link(index);
  launcher.search.reset();
  launcher.step.reset();
  launcher.known_to_all = false;
  launcher.sent_to = place;
  launcher.asked = now_;
  constexpr int kNextPort = 10;
  if (std::exchange(launcher.holds, 0) != 0) launcher.record.standby_port += kNextPort;
}

void Cluster::close_link(int index) {
  at(index).link->client_open = false;
  at(index).link->up.ended = true;
  at(index).link = nullptr;
}

void Cluster::lose_link(int index, bool closed) {
  Launcher& launcher = at(index);
  launcher.asks = {launcher.link->server, launcher.link->port};
  launcher.asked = now_;
  close_link(index);
  if (!launcher.membership) return;
  if (launcher.holds != 0 || (!launcher.known_to_all && !launcher.search)) return leave(index);
  launcher.running = false;
  launcher.leaderless = true;
  if (!launcher.search) {
    launcher.search.emplace(*launcher.membership);
    return follow(index, launcher.search->leader_lost(closed));
  }
  follow(index,
         launcher.search->has_voted() ? launcher.search->successor_lost(closed) : launcher.search->out_of_reach());
}

void Cluster::follow(int index, const Step& step) {
  Launcher& launcher = at(index);
  launcher.step.reset();
  if (step.kind == Step::Kind::kGiveUp) return leave(index);
  if (step.kind == Step::Kind::kLead) {
    Coordinator& coordinator = open_rendezvous(launcher, launcher.record.standby_port);
    coordinator.resume({.round = launcher.membership->round}, step.ballot, now_);
    return vote(index, {index, launcher.record.standby_port});
  }
  launcher.step = step;
  if (step.kind == Step::Kind::kJoin) launcher.asks = {launcher_named(step.other.name), step.other.standby_port};
  launcher.asked = now_;
}

void Cluster::vote(int index, const Place& leader) {
  at(index).step.reset();
  at(index).search->joined();
  join(index, leader);
}

void Cluster::take_step(int index) {
  Launcher& launcher = at(index);
  const bool refused = refuses(launcher.asks, index);
  if (launcher.step->kind == Step::Kind::kProbe) {
    if (refused || now_ - launcher.asked >= kHeartbeat / 2) follow(index, launcher.search->probed(refused));
  } else if (answers(launcher.asks, index)) {
    vote(index, launcher.asks);
  } else if (refused || now_ - launcher.asked >= kHeartbeat) {
    follow(index, launcher.search->out_of_reach());
  }
}

}  // namespace lrun::test
