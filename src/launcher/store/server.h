#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/event_loop.h"
#include "base/fd.h"
#include "store/client_shares.h"
#include "store/horovod_server.h"
#include "store/key_value_table.h"
#include "store/listening_socket.h"
#include "wire/store_protocol.h"
#include "store/refusal_log.h"
#include "store/send_buffer.h"
#include "store/socket_owners.h"
#include "store/socket_poll.h"

namespace lrun::launcher {

/// What a launcher knows of its run's processes on this host. May look through /proc: asked only where it matters.
struct StoreRunLook {
  /// Whether a process of the run is of this user, who is neither our own nor root. Empty: none is.
  std::function<bool(uid_t user)> has_user = {};
  /// Empty function: whoever may connect is of the run. Empty result: not now, it was looked a moment ago.
  std::function<std::optional<RunSockets>()> sockets = {};
};

struct StoreServerOptions {
  StoreReach reach = StoreReach::kLoopback;
  std::uint16_t port = 0;         ///< 0: the kernel chooses
  int listener = -1;              ///< a socket that listens already, which the server takes over; -1: none
  std::string address = {};       ///< numeric: only this one of the host's addresses; empty: as `reach` says
  bool any_port_will_do = false;  ///< when `port` is taken the kernel chooses, too
  /// Serve nobody and keep the port for a process that is to listen on it, as keep_port() does.
  bool only_keeps_port = false;
  /// A client whose unread answers exceed this is not read from until it has taken them.
  std::size_t max_unsent_bytes = std::size_t{1} << 20U;
  /// Open at the same time. One more takes the place of another, as ClientShares::who_gives_way() says; where nobody
  /// gives way it is refused.
  std::size_t max_connections = 4096;
  /// What the table, requests that are not whole and answers that are not read may take. Programs of PyTorch put
  /// kilobytes into their store. One that writes without end would take the launcher's memory, and with it the job.
  ClientShares::Limits limits = {};
  StoreRunLook run = {};
  /// Gets a line about clients that were refused, as RefusalLog has it, and when descriptors run out. May be empty.
  /// Must not call the server.
  std::function<void(const std::string& line)> log = {};
  /// Gets what a client says is its pid in its first ping, which torch's send right after they connected; the numbers
  /// of later pings mean nothing. May be empty. Must not call the server.
  std::function<void(std::int32_t pid)> greeted = {};
  /// Connections that begin with this byte belong to another protocol: they are given away. No client of the store
  /// begins with anything but 0.
  char foreign_byte = 0;
  /// Gets such a connection and the bytes that came first. May be empty: then it is refused. Must not call the server.
  std::function<void(Fd socket, std::string bytes)> foreign = {};
  /// Serve Horovod's rendezvous at the same port, too; its connections count among max_connections.
  bool serves_horovod = false;
};

/// The workers' store: a TCPStore server for clients of torch 2.1 and newer, on the launcher's thread.
///
/// Binds in its constructor and keeps the socket for its whole life, so nobody can take the port between two rounds.
/// Never blocks, arms no timer while all is well, and never resolves a client's name. No client can hold up another:
/// each gets a bounded piece of a turn, and one that does not read its answers is not read from. Of this host only
/// processes of our own user, of root, and of users that the run itself has, are let in, as far as the kernel tells.
class StoreServer {
 public:
  /// \param loop  must outlive the server.
  /// \throws std::system_error  as open_listening_socket(): EADDRINUSE with the port in its text.
  StoreServer(EventLoop& loop, StoreServerOptions options);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

  /// Connections that have shown the magic number.
  [[nodiscard]] std::size_t num_clients() const;

  /// Connections that have shown the magic number since the round began, ended ones included.
  [[nodiscard]] std::size_t clients_seen() const { return clients_seen_; }

  /// What the ranks of Horovod have told; nullptr where their rendezvous is not served.
  [[nodiscard]] const HorovodValues* horovod() const { return horovod_ ? &horovod_->values() : nullptr; }

  /// Begins a round with an empty table: closes every connection, also those that wait to be accepted, and forgets all
  /// keys. Socket and port stay.
  void reset();

  /// As a server whose process has ended: nobody is let in any more, and then every connection is closed.
  void vanish();

  /// Takes the place of StoreServerOptions::log, ::greeted and ::run: who hosts the store may change during a run.
  void set_listeners(std::function<void(const std::string& line)> log, std::function<void(std::int32_t pid)> greeted,
                     StoreRunLook run = {});

  /// Says how many clients were refused that no line told of. For the end of a run.
  void tell_refusals();

 private:
  struct Connection;

  void close_all();
  void accept_batch();
  void accept_again_later(int error);
  void add_connection(Fd socket);
  [[nodiscard]] bool lets_in(const ConnectionPeer& peer) const;
  /// False when there is no room for one more connection.
  bool make_room(const ConnectionPlace& newcomer);
  /// Tells the clients of the run from others of this host, unless that was looked a moment ago.
  void settle();
  std::string why_no_room(StoreClientId id, std::uint64_t bytes);
  [[nodiscard]] bool takes_requests(const Connection& connection) const;
  /// A connection that is not there any more is passed over.
  void serve_ready(StoreClientId id, SocketEvents events);
  void read_from(Connection& connection);
  /// Carries out the requests in `bytes`; what is left when the client has too many unread answers is kept for later.
  /// The connection may be gone afterwards.
  void serve(Connection& connection, std::string_view bytes);
  /// True when the connection speaks another protocol and was given to who serves that.
  bool give_away(Connection& connection, std::string_view bytes);
  void write_to(Connection& connection);
  /// Sends what is there and watches for what the rest needs. False when the connection is gone.
  bool flush(Connection& connection);
  void watch(Connection& connection);
  void tell_released(const Connection& served);
  void refuse(Connection& connection, const std::string& reason);
  void tell_refusal(int socket, const std::string& reason);
  void close(StoreClientId id);
  void hold_what_is_held(const Connection& connection);
  void greet(const StoreRequest& request) const;
  void log(const std::string& line) const;

  EventLoop& loop_;
  StoreServerOptions options_;
  Fd listener_;
  std::uint16_t port_ = 0;
  KeyValueTable table_;
  std::unordered_map<StoreClientId, std::unique_ptr<Connection>> connections_;
  ClientShares shares_;
  SocketOwners owners_;
  StoreClientId last_id_ = 0;
  std::size_t clients_seen_ = 0;
  std::unique_ptr<char[]> read_buffer_;  // shared by all connections; made for the first
  SocketPoll poll_;
  EventLoop::Watch accepting_;
  EventLoop::Timer accept_again_;  // only while descriptors have run out
  bool accept_failed_ = false;     // said once, until a connection could be accepted again
  RefusalLog refusals_;
  std::optional<HorovodServer> horovod_;
};

}  // namespace lrun::launcher
