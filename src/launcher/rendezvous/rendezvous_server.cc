// In: connections that the StoreServer hands over, their bytes and their ends. Out: messages of the Coordinator, on
// these connections. Called by the loop, and by JobServers.
#include "rendezvous/rendezvous_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "rendezvous/handshake.h"
#include "rendezvous/port_probe.h"
#include "store/send_buffer.h"
#include "wire/connect.h"

namespace lrun::launcher {
namespace {

using Kind = LauncherMessage::Kind;

constexpr std::size_t kReadBytesOfMember = std::size_t{64} << 10U;
/// Bytes that a launcher may leave unread before it counts as lost.
constexpr std::size_t kMostUnsent = 2 * kMostBytesFromLeader;

}  // namespace

struct RendezvousServer::Connection {
  Connection(ConnectionId launcher, Fd descriptor, const std::string& secret)
      : id(launcher), socket(std::move(descriptor)), handshake(Handshake::Side::kServer, secret, random_nonce()) {}

  ConnectionId id;
  Fd socket;
  Handshake handshake;
  LauncherMessageDecoder decoder{kMostBytesFromLauncher};
  SendBuffer answers;
  SteadyTime heard = steady_now();
  bool joined = false;
  bool invites = false;  ///< its job meets elsewhere: it stays to see our end, and is not waited for
  bool closing = false;  ///< once everything is sent
  bool shut = false;     ///< everything is: the other end closes
  EventLoop::Watch readable;
  EventLoop::Watch writable;
  std::unique_ptr<PortProbe> probe;  ///< the connection is closed: is its launcher dead, too?
};

RendezvousServer::RendezvousServer(EventLoop& loop, const Options& options)
    : loop_(loop),
      times_(options.times),
      max_launchers_(options.max_launchers),
      secret_(options.secret),
      rejected_(options.rejected),
      begun_(options.begun),
      coordinator_({.times = options.times,
                    .merge = options.merge,
                    .own_token = options.own_token,
                    .hosts = options.hosts,
                    .members_elect_leader = options.members_elect_leader},
                   steady_now()),
      server_(loop, {.reach = options.reach,
                     .port = options.port,
                     .listener = options.listener,
                     .address = options.address,
                     .max_connections = options.max_store_connections,
                     .foreign_byte = kLauncherProtocol.front(),
                     .foreign = [this](Fd socket, const std::string& bytes) { accept(std::move(socket), bytes); },
                     .serves_horovod = options.serves_horovod}) {
  arm();
  next_check_ = steady_now();
  find_silent();
}

RendezvousServer::~RendezvousServer() = default;

void RendezvousServer::resume(const JobState& state, const std::optional<Ballot>& ballot) {
  coordinator_.resume(state, ballot, steady_now());
  arm();
}

void RendezvousServer::redirect_to(const std::optional<RendezvousAddress>& target) {
  // A launcher that invited us and still goes on with the job is to do so again.
  if (!target) std::erase_if(connections_, [](const auto& entry) { return entry.second->invites; });
  coordinator_.redirect_to(target, steady_now());
  send_all();
}

/// The port is closed first: a launcher that loses its connection asks there whether this one lives.
void RendezvousServer::abandon() {
  server_.shut_down();
  deadline_.cancel();
  silence_check_.cancel();
  connections_.clear();
}

bool RendezvousServer::over() const {
  const auto joined = [](const auto& entry) { return entry.second->joined; };
  return coordinator_.over() && std::none_of(connections_.begin(), connections_.end(), joined);
}

void RendezvousServer::on_over(std::function<void()> when_over) {
  when_over_ = std::move(when_over);
  send_all();
}

void RendezvousServer::accept(Fd socket, const std::string& bytes) {
  // Descriptors are bounded, and belong to launchers of the job first.
  if (connections_.size() >= max_launchers_ && !make_room()) return;
  const ConnectionId id = ++last_id_;
  Connection& connection =
      *connections_.emplace(id, std::make_unique<Connection>(id, std::move(socket), secret_)).first->second;
  connection.readable = loop_.on_readable(connection.socket.get(), [this, &connection] { read_from(connection); });
  feed(connection, bytes);
}

/// Foreign connections may be many. The one that has had the longest time to join gives way, never a launcher of the
/// job. \return whether there is room now.
bool RendezvousServer::make_room() {
  const auto oldest = std::find_if(connections_.begin(), connections_.end(),
                                   [](const auto& entry) { return !entry.second->joined || entry.second->shut; });
  if (oldest == connections_.end()) return false;
  if (!oldest->second->closing) report_rejection(*oldest->second, "it did not join before too many others connected");
  connections_.erase(oldest);
  return true;
}

void RendezvousServer::report_rejection(const Connection& connection, const std::string& why) {
  const std::string peer = ends_of_connection(connection.socket.get()).peer;
  const auto line = rejections_.refused(peer.empty() ? "an unknown address" : peer, why, steady_now());
  if (line && rejected_) rejected_(*line);
}

void RendezvousServer::report_rejections() {
  if (const std::string line = rejections_.take_rest(); !line.empty() && rejected_) rejected_(line);
}

void RendezvousServer::read_from(Connection& connection) {
  if (connection.probe) return;  // it has ended
  char bytes[kReadBytesOfMember];
  const ssize_t count = ::recv(connection.socket.get(), bytes, sizeof bytes, 0);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  const bool was_closed = count == 0 || (count < 0 && errno == ECONNRESET);
  if (was_closed) return probe(connection);
  if (count < 0) return lose(connection.id, std::generic_category().message(errno), true);
  if (connection.closing) return;
  if (connection.joined || connection.invites) connection.heard = steady_now();  // others have one heartbeat to join
  feed(connection, {bytes, static_cast<std::size_t>(count)});
}

/// The connection may be gone afterwards.
void RendezvousServer::feed(Connection& connection, std::string_view bytes) {
  if (connection.handshake.done()) {
    connection.decoder.feed(bytes);
  } else if (!shake_hands(connection, bytes)) {
    return flush(connection);
  }
  serve(connection);
}

/// \return whether the launcher may speak now.
bool RendezvousServer::shake_hands(Connection& connection, std::string_view bytes) {
  connection.handshake.feed(bytes);
  connection.answers.tail() += connection.handshake.take_output();
  connection.decoder.feed(connection.handshake.take_rest());
  if (const std::string& why = connection.handshake.refusal(); !why.empty()) {
    connection.closing = true;
    report_rejection(connection, why);
  }
  return connection.handshake.done();
}

/// The connection may be gone afterwards. Heartbeats are many, and concern no other launcher.
void RendezvousServer::serve(Connection& connection) {
  const ConnectionId id = connection.id;
  bool has_decided = false;
  while (!connection.closing) {
    const std::optional<LauncherMessage> message = connection.decoder.next();
    if (!message) break;
    if (message->kind == Kind::kHeartbeat) {
      acknowledge(connection, *message);
    } else {
      if (message->kind == Kind::kJoin) {
        connection.joined = true;
        connection.heard = steady_now();
      }
      connection.invites = connection.invites || message->kind == Kind::kInvite;
      if (message->kind == Kind::kLeave || message->kind == Kind::kDropOut) connection.closing = true;
      coordinator_.received(id, *message, steady_now());
      has_decided = true;
    }
  }
  if (!connection.decoder.refusal().empty()) {
    refuse(connection, connection.decoder.refusal());
    has_decided = true;
  }
  if (has_decided) send_all();
  if (const auto still = connections_.find(id); still != connections_.end()) flush(*still->second);
}

void RendezvousServer::acknowledge(Connection& connection, const LauncherMessage& heartbeat) {
  append_message(connection.answers.tail(), {.kind = Kind::kHeartbeatAck,
                                             .sent_ns = heartbeat.sent_ns,
                                             .steady_ns = nanoseconds(steady_now()),
                                             .wall_ns = nanoseconds(std::chrono::system_clock::now())});
}

void RendezvousServer::refuse(Connection& connection, const std::string& why) {
  append_message(connection.answers.tail(), {.kind = Kind::kRejected, .text = why});
  connection.closing = true;
  coordinator_.left(connection.id, why, steady_now(), connection.heard, true);
}

void RendezvousServer::send_all() {
  std::vector<std::pair<ConnectionId, std::string>> broken;
  for (const OutgoingMessage& send : coordinator_.outbox().take_messages()) {
    EncodedMessage message(send.message);  // once for all that get it
    for (std::size_t i = 0; i < send.to.size(); ++i) {
      const auto found = connections_.find(send.to[i]);
      if (found == connections_.end()) continue;
      Connection& connection = *found->second;
      connection.closing = connection.closing || send.last;
      const std::string_view bytes = send.selves.empty() ? message.bytes() : message.bytes_for(send.selves[i]);
      const std::string problem = push(connection, bytes);
      if (!problem.empty()) broken.emplace_back(send.to[i], problem);
    }
  }
  for (const std::string& line : coordinator_.outbox().take_warnings()) {
    if (rejected_) rejected_(line);
  }
  if (begun_ && std::exchange(rounds_reported_, coordinator_.rounds_begun()) != coordinator_.rounds_begun()) {
    begun_(coordinator_.state());
  }
  arm();
  if (when_over_ && over() && !report_over_.armed()) {
    report_over_ = loop_.after(Duration::zero(), std::exchange(when_over_, nullptr));
  }
  for (const auto& [id, how] : broken) lose(id, how, true);  // messages about its loss come behind the earlier ones
}

/// Sends the bytes that wait, and `bytes` behind them, as far as the socket takes them; the rest waits. A connection
/// that broke is lost where it is read, behind its last message.
/// \return why the connection is of no use any more; empty: it is.
std::string RendezvousServer::push(Connection& connection, std::string_view bytes) {
  if (!connection.answers.send_to(connection.socket.get(), bytes)) {
    connection.writable.cancel();
    ::shutdown(connection.socket.get(), SHUT_RDWR);
    return {};
  }
  if (connection.answers.size() > kMostUnsent) return "its launcher does not read its messages";
  if (connection.answers.empty()) {
    connection.writable.cancel();
    // The other end closes: closing with unread bytes here could take back the last message.
    if (connection.closing && !std::exchange(connection.shut, true)) ::shutdown(connection.socket.get(), SHUT_WR);
  } else if (!connection.writable.armed()) {
    connection.writable = loop_.on_writable(connection.socket.get(), [this, &connection] { flush(connection); });
  }
  return {};
}

/// The connection may be gone afterwards.
void RendezvousServer::flush(Connection& connection) {
  if (const std::string problem = push(connection, {}); !problem.empty()) lose(connection.id, problem, true);
}

/// Something between the hosts may have closed the connection of a launcher that lives, and that may become a leader.
void RendezvousServer::probe(Connection& connection) {
  constexpr std::string_view kClosed = "its launcher ended: the connection was closed";
  const std::optional<RendezvousAddress> standby = coordinator_.standby_of(connection.id);
  if (!standby) return lose(connection.id, std::string(kClosed), false);
  // Its end is known: what remains to be known is whether the launcher lives.
  connection.readable.cancel();
  connection.writable.cancel();
  connection.heard = steady_now();  // longer than the probe takes
  connection.probe = std::make_unique<PortProbe>(loop_);
  connection.probe->ask(
      standby->address, static_cast<std::uint16_t>(standby->port), times_.heartbeat / 2,
      [this, id = connection.id, how = std::string(kClosed)](bool refused) { lose(id, how, !refused); });
}

void RendezvousServer::lose(ConnectionId who, const std::string& how, bool may_run) {
  const auto found = connections_.find(who);
  const SteadyTime heard = found == connections_.end() ? steady_now() : found->second->heard;
  close(who);
  coordinator_.left(who, how, steady_now(), heard, may_run);
  send_all();
}

void RendezvousServer::close(ConnectionId id) { connections_.erase(id); }

void RendezvousServer::find_silent() {
  // The machine slept, or lrun was stopped: all launchers get a new heartbeat's time.
  if (steady_now() - next_check_ > times_.heartbeat / 2) {
    for (const auto& [id, connection] : connections_) connection->heard = steady_now();
  }
  std::vector<ConnectionId> silent;
  for (const auto& [id, connection] : connections_) {
    if (steady_now() - connection->heard >= times_.heartbeat) silent.push_back(id);
  }
  for (const ConnectionId id : silent) {
    // This process may not have read for a moment: bytes that came meanwhile are read first.
    const auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    read_from(*found->second);
    const auto still = connections_.find(id);
    if (still == connections_.end() || steady_now() - still->second->heard < times_.heartbeat) continue;
    if (still->second->joined) {
      append_message(
          still->second->answers.tail(),
          {.kind = Kind::kRejected,
           .text = "this launcher was silent for " + format_duration(times_.heartbeat) + " and counts as lost"});
      (void)still->second->answers.send_to(still->second->socket.get());
    }
    lose(id, "silence for " + format_duration(times_.heartbeat), true);
  }
  next_check_ = steady_now() + times_.heartbeat;
  for (const auto& [id, connection] : connections_)
    next_check_ = std::min(next_check_, connection->heard + times_.heartbeat);
  const auto delay = std::chrono::ceil<Duration>(next_check_ - steady_now());
  silence_check_ = loop_.after(std::max(delay, Duration::zero()), [this] { find_silent(); });
}

void RendezvousServer::arm() {
  deadline_.cancel();
  const std::optional<SteadyTime> next = coordinator_.deadline();
  if (!next) return;
  const auto delay = std::chrono::ceil<Duration>(*next - steady_now());
  deadline_ = loop_.after(std::max(delay, Duration::zero()), [this] {
    coordinator_.advance(steady_now());
    send_all();
  });
}

}  // namespace lrun::launcher
