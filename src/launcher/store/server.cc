// In: connections to the store's port and the requests of their clients. Out: answers, connections of other protocols,
// and lines about refused clients. The launcher makes one per run, or per host of a job, on its event loop.
#include "store/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "store/handle_request.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kReadBytesPerTurn = std::size_t{64} << 10U;
/// An unfinished request of this size is always allowed: more than programs write, and little even from many clients.
constexpr std::uint64_t kAlwaysHeld = std::uint64_t{16} << 10U;

std::string describe_peer(int fd) {
  sockaddr_storage bytes{};
  socklen_t size = sizeof bytes;
  char host[INET6_ADDRSTRLEN] = "";
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&bytes), &size) != 0) return "a client that is gone";
  if (bytes.ss_family == AF_INET6) {
    const auto* address = reinterpret_cast<const sockaddr_in6*>(&bytes);
    ::inet_ntop(AF_INET6, &address->sin6_addr, host, sizeof host);
    return "[" + std::string(host) + "]:" + std::to_string(ntohs(address->sin6_port));
  }
  const auto* address = reinterpret_cast<const sockaddr_in*>(&bytes);
  ::inet_ntop(AF_INET, &address->sin_addr, host, sizeof host);
  return std::string(host) + ":" + std::to_string(ntohs(address->sin_port));
}

std::string describe_other_user(const ConnectionPeer& peer) {
  return "it belongs to user " + std::to_string(peer.user) + ", and the run to user " + std::to_string(::geteuid());
}

bool is_admitted(const ConnectionPeer& peer, const StoreRunLook& run) {
  if (peer.where != ConnectionPeer::Where::kHere) return peer.where == ConnectionPeer::Where::kElsewhere;
  if (peer.user == ::geteuid() || peer.user == 0) return true;
  return run.has_user && run.has_user(peer.user);
}

Fd listen_as(const StoreServerOptions& options) {
  if (options.listener >= 0) return Fd(options.listener);
  auto& open = options.only_keeps_port ? keep_port : open_listening_socket;
  try {
    return open(options.reach, options.port, options.address);
  } catch (const std::system_error& error) {
    if (!options.any_port_will_do || error.code().value() != EADDRINUSE) throw;
  }
  return open(options.reach, 0, options.address);
}

}  // namespace

struct StoreServer::Connection {
  Connection(StoreClientId client, Fd descriptor) : id(client), socket(std::move(descriptor)) {}

  StoreClientId id;
  Fd socket;
  StoreRequestDecoder decoder;
  bool pinged = false;
  bool has_sent = false;  // at least one byte
  std::string unserved;   // bytes that were read and wait until the client reads its answers
  SendBuffer answers;
  SocketEvents watched = {.readable = true};

  [[nodiscard]] std::uint64_t held_bytes() const { return decoder.held_bytes() + unserved.size() + answers.size(); }
};

StoreServer::StoreServer(EventLoop& loop, StoreServerOptions options)
    : loop_(loop),
      options_(std::move(options)),
      acceptor_(
          loop_, listen_as(options_), [this](Fd socket) { add_connection(std::move(socket)); },
          [this](const std::string& line) { log("store: " + line); }),
      shares_(options_.limits),
      poll_(loop_, [this](StoreClientId id, SocketEvents events) { serve_ready(id, events); }) {
  if (options_.serves_horovod) {
    http_.emplace(
        loop_, [this](HttpRequest request) { return horovod_.answer(std::move(request)); },
        [this](int socket, const std::string& reason) { report_refusal(socket, reason); });
  }
  if (!options_.only_keeps_port) acceptor_.start();
}

StoreServer::~StoreServer() = default;

std::size_t StoreServer::num_clients() const { return connections_.size() - shares_.num_silent(); }

void StoreServer::close_all() {
  for (const auto& [id, connection] : connections_) poll_.remove(connection->socket.get());
  connections_.clear();
  shares_.clear();
  table_ = KeyValueTable();
  if (http_) http_->close_all();
  horovod_.clear();
  clients_seen_ = 0;
}

void StoreServer::shut_down() {
  acceptor_.stop();
  close_all();
}

void StoreServer::reset() {
  close_all();
  acceptor_.drop_waiting();  // a worker of the last round may have connected and written before it died
}

void StoreServer::add_connection(Fd socket) {
  const std::optional<ConnectionPlace> place = place_of_connection(socket.get());
  if (!place) return;  // it is closed already
  const ConnectionPeer peer = owners_.peer_of(*place);
  if (!is_admitted(peer, options_.run)) {
    // A client that has closed its end expects no answer. Its user is unknown now: it may be another user's, and its
    // requests would be executed.
    if (peer.where != ConnectionPeer::Where::kGone) report_refusal(socket.get(), describe_other_user(peer));
    return;
  }
  const std::size_t open = connections_.size() + (http_ ? http_->num_connections() : 0);
  if (open >= options_.max_connections && !make_room(*place)) {
    report_refusal(socket.get(), std::to_string(open) + " are open, and that is the limit");
    return;
  }
  if (!read_buffer_) read_buffer_ = std::make_unique_for_overwrite<char[]>(kReadBytesPerTurn);
  const StoreClientId id = ++last_id_;
  const int fd = socket.get();
  const auto& [entry, added] = connections_.emplace(id, std::make_unique<Connection>(id, std::move(socket)));
  shares_.add(id, *place, peer);
  poll_.add(fd, id, entry->second->watched);
}

bool StoreServer::make_room(const ConnectionPlace& newcomer) {
  classify_clients();
  const auto eviction = shares_.find_eviction(newcomer);
  if (!eviction) return http_ && http_->make_room();
  refuse(*connections_.at(eviction->client), std::string(eviction->why));
  return true;
}

void StoreServer::classify_clients() {
  if (!shares_.has_unclassified()) return;
  if (!options_.run.sockets) return shares_.classify(nullptr);
  if (const std::optional<RunSockets> of_run = options_.run.sockets()) shares_.classify(&*of_run);
}

std::string StoreServer::why_no_room(StoreClientId id, std::uint64_t bytes) {
  std::string why = shares_.why_not(id, bytes, table_.bytes());
  if (why.empty() || !shares_.is_unclassified(id)) return why;
  classify_clients();
  return shares_.why_not_yet(id, bytes, table_.bytes());
}

/// A client that does not read its answers gets no more of them, least of all where memory is short.
bool StoreServer::takes_requests(const Connection& connection) const {
  const std::size_t unsent = connection.answers.size();
  if (unsent == 0) return true;
  return unsent <= options_.max_unsent_bytes && shares_.why_not(connection.id, 0, table_.bytes()).empty();
}

void StoreServer::serve_ready(StoreClientId id, SocketEvents events) {
  const auto entry = connections_.find(id);
  if (entry == connections_.end()) return;
  Connection& connection = *entry->second;
  const SocketEvents asked_for = connection.watched;
  if (events.readable && asked_for.readable) return read_from(connection);
  if (events.writable && asked_for.writable) write_to(connection);
}

void StoreServer::read_from(Connection& connection) {
  const ssize_t count = ::recv(connection.socket.get(), read_buffer_.get(), kReadBytesPerTurn, 0);
  if (count > 0 && hand_over(connection, {read_buffer_.get(), static_cast<std::size_t>(count)})) return;
  if (count > 0) {
    serve(connection, {read_buffer_.get(), static_cast<std::size_t>(count)});
  } else if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
    close(connection.id);
  }
}

bool StoreServer::hand_over(Connection& connection, std::string_view bytes) {
  if (std::exchange(connection.has_sent, true)) return false;
  const bool is_http = http_ && HttpServer::begins_request(bytes.front());
  if (!is_http && (!options_.foreign || bytes.front() != options_.foreign_byte)) return false;
  poll_.remove(connection.socket.get());
  Fd socket = std::move(connection.socket);
  close(connection.id);
  if (is_http) {
    http_->add_connection(std::move(socket), bytes);
  } else {
    options_.foreign(std::move(socket), std::string(bytes));
  }
  return true;
}

void StoreServer::serve(Connection& connection, std::string_view bytes) {
  std::string reason;
  const bool was_known = connection.decoder.validated();
  const WhyNoRoom why_no_room = [this, id = connection.id](std::uint64_t more) { return this->why_no_room(id, more); };
  while (reason.empty() && takes_requests(connection)) {
    std::optional<StoreRequest> request = connection.decoder.next(bytes);
    if (!request) {
      reason = connection.decoder.refusal();
      break;
    }
    if (request->command == StoreCommand::kPing && !std::exchange(connection.pinged, true)) report_pid(*request);
    // Without the request: it is moved into the table, or deleted.
    shares_.hold(connection.id, connection.answers.size() + table_.bytes_of_wait(connection.id));
    reason = handle_request(table_, connection.id, std::move(*request), connection.answers.tail(), why_no_room);
    answer_released(connection);
  }
  if (!was_known && connection.decoder.validated()) {
    ++clients_seen_;
    shares_.validated(connection.id);
  }
  connection.unserved.assign(bytes);
  update_share(connection);
  if (reason.empty() && connection.decoder.held_bytes() > kAlwaysHeld) reason = this->why_no_room(connection.id, 0);
  if (!reason.empty()) return refuse(connection, reason);
  flush(connection);
}

void StoreServer::update_share(const Connection& connection) {
  shares_.hold(connection.id, connection.held_bytes() + table_.bytes_of_wait(connection.id));
}

void StoreServer::report_pid(const StoreRequest& ping) const {
  if (!options_.pinged) return;
  constexpr std::int64_t kMostPid = std::numeric_limits<std::int32_t>::max();
  const auto pid = static_cast<std::int64_t>(ping.number);
  if (pid > 0 && pid <= kMostPid) options_.pinged(static_cast<std::int32_t>(pid));
}

void StoreServer::write_to(Connection& connection) {
  if (!flush(connection) || !connection.answers.empty() || connection.unserved.empty()) return;
  serve(connection, std::exchange(connection.unserved, {}));
}

bool StoreServer::flush(Connection& connection) {
  if (!connection.answers.send_to(connection.socket.get())) {
    close(connection.id);
    return false;
  }
  update_share(connection);
  watch(connection);
  return true;
}

void StoreServer::watch(Connection& connection) {
  // Unserved requests wait for the next turn even when all answers could be sent at once: other clients come first.
  const bool write = !connection.answers.empty() || !connection.unserved.empty();
  const bool read = connection.unserved.empty() && takes_requests(connection);
  const SocketEvents wanted{.readable = read, .writable = write};
  if (wanted == connection.watched) return;
  connection.watched = wanted;
  poll_.change(connection.socket.get(), connection.id, wanted);
}

void StoreServer::answer_released(const Connection& served) {
  for (const StoreClientId id : table_.take_released()) {
    Connection& released = *connections_.at(id);
    released.answers.tail().push_back(kStopWaiting);
    if (id != served.id) flush(released);  // the one that is being served is flushed, or closed, by its caller
  }
}

void StoreServer::refuse(Connection& connection, const std::string& reason) {
  (void)connection.answers.send_to(connection.socket.get());  // earlier requests are answered
  report_refusal(connection.socket.get(), reason);
  close(connection.id);
}

void StoreServer::report_refusal(int socket, const std::string& reason) {
  if (!options_.log) return;
  const auto line = refusals_.refused(describe_peer(socket), reason, std::chrono::steady_clock::now());
  if (line) log(*line);
}

void StoreServer::set_listeners(std::function<void(const std::string& line)> log,
                                std::function<void(std::int32_t pid)> pinged, StoreRunLook run) {
  options_.log = std::move(log);
  options_.pinged = std::move(pinged);
  options_.run = std::move(run);
}

void StoreServer::log_counted_refusals() {
  if (const std::string line = refusals_.take_rest(); !line.empty()) log(line);
}

void StoreServer::close(StoreClientId id) {
  table_.cancel_wait(id);
  const auto entry = connections_.find(id);
  if (entry == connections_.end()) return;
  if (entry->second->socket) poll_.remove(entry->second->socket.get());
  connections_.erase(entry);
  shares_.remove(id);
}

void StoreServer::log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

}  // namespace lrun::launcher
