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
#include "store/connection_acceptor.h"
#include "store/horovod_values.h"
#include "store/http_server.h"
#include "store/key_value_table.h"
#include "store/listening_socket.h"
#include "store/refusal_log.h"
#include "store/send_buffer.h"
#include "store/socket_owners.h"
#include "store/socket_poll.h"
#include "wire/store_protocol.h"

namespace lrun::launcher {

/// The run's processes on this host, as the launcher sees them. These functions may look through /proc: the server
/// calls them only where the answer matters.
struct StoreRunLook {
  /// Whether a process of the run belongs to this user, which is neither our own user nor root. Empty: there is none.
  std::function<bool(uid_t user)> has_user = {};
  /// The sockets of the run's processes; empty: read a moment ago, not again now. Empty function: every client that is
  /// admitted belongs to the run.
  std::function<std::optional<RunSockets>()> sockets = {};
};

struct StoreServerOptions {
  StoreReach reach = StoreReach::kLoopback;
  std::uint16_t port = 0;         ///< 0: the kernel chooses
  int listener = -1;              ///< a socket that listens already; the server owns it from now on; -1: none
  std::string address = {};       ///< numeric: only this one of the host's addresses; empty: as `reach` says
  bool any_port_will_do = false;  ///< when `port` is taken the kernel chooses, too
  /// Accept no connection, and keep the port for a process that is to listen on it, as keep_port() does.
  bool only_keeps_port = false;
  /// A client with more unread answers than this is not read from until it has received them.
  std::size_t max_unsent_bytes = std::size_t{1} << 20U;
  /// Open at the same time. For one more another is closed, the one that ClientShares::find_eviction() names; without
  /// one the new connection is refused.
  std::size_t max_connections = 4096;
  /// How much memory the table, unfinished requests and unread answers may take. PyTorch programs put kilobytes into
  /// their store. A program that writes without end would use up the launcher's memory, and so end the job.
  ClientShares::Limits limits = {};
  StoreRunLook run = {};
  /// Gets the lines of RefusalLog about refused clients, and a line when descriptors run out. May be empty. Must not
  /// call the server.
  std::function<void(const std::string& line)> log = {};
  /// Gets the pid in a client's first ping: torch's clients send it right after they connected. The numbers of later
  /// pings mean nothing. May be empty. Must not call the server.
  std::function<void(std::int32_t pid)> pinged = {};
  /// Connections that begin with this byte belong to another protocol: they are handed over. Clients of the store
  /// always begin with 0.
  char foreign_byte = 0;
  /// Gets such a connection and its first bytes. May be empty: then the connection is refused. Must not call the
  /// server.
  std::function<void(Fd socket, std::string bytes)> foreign = {};
  /// Serve Horovod's rendezvous at the same port, too. Its connections count towards max_connections.
  bool serves_horovod = false;
};

/// The workers' store: a TCPStore server for clients of torch 2.1 and newer, on the launcher's thread.
///
/// Binds in its constructor and keeps the socket for its whole life, so no other process can bind the port between two
/// rounds. Never blocks, arms no timer while all is well, and never resolves a client's name. No client can delay
/// another: each gets a bounded part of a turn, and a client that does not read its answers is not read from. From this
/// host it admits processes of our own user, of root, and of the users that the run itself has, where the kernel tells.
class StoreServer {
 public:
  /// \param loop  must outlive the server.
  /// \throws std::system_error  as open_listening_socket(): EADDRINUSE with the port in its text.
  StoreServer(EventLoop& loop, StoreServerOptions options);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  [[nodiscard]] std::uint16_t port() const { return acceptor_.port(); }

  /// Connections that have shown the magic number.
  [[nodiscard]] std::size_t num_clients() const;

  /// Connections that have shown the magic number since the round began, ended ones included.
  [[nodiscard]] std::size_t clients_seen() const { return clients_seen_; }

  /// The values that Horovod's ranks have reported; nullptr where their rendezvous is not served.
  [[nodiscard]] const HorovodValues* horovod() const { return http_ ? &horovod_ : nullptr; }

  /// Begins a round with an empty table: closes every connection, also those that wait to be accepted, and deletes all
  /// keys. Socket and port stay.
  void reset();

  /// Closes first the listening socket and then every connection, as the end of the process would.
  void shut_down();

  /// Replaces StoreServerOptions::log, ::pinged and ::run: the store may serve another part of the launcher later.
  void set_listeners(std::function<void(const std::string& line)> log, std::function<void(std::int32_t pid)> pinged,
                     StoreRunLook run = {});

  /// Logs how many clients were refused without a line of their own. For the end of a run.
  void log_counted_refusals();

 private:
  struct Connection;

  void close_all();
  void add_connection(Fd socket);
  /// False when there is no room for one more connection.
  bool make_room(const ConnectionPlace& newcomer);
  /// Finds out which clients of this host belong to the run, unless the launcher looked a moment ago.
  void classify_clients();
  std::string why_no_room(StoreClientId id, std::uint64_t bytes);
  [[nodiscard]] bool takes_requests(const Connection& connection) const;
  /// No effect for a connection that was closed already.
  void serve_ready(StoreClientId id, SocketEvents events);
  void read_from(Connection& connection);
  /// Executes the requests in `bytes`; what is left when the client has too many unread answers is kept for later. The
  /// connection may be closed afterwards.
  void serve(Connection& connection, std::string_view bytes);
  /// True when the connection speaks another protocol: its server has it now.
  bool hand_over(Connection& connection, std::string_view bytes);
  void write_to(Connection& connection);
  /// Sends what the socket accepts now, and watches for the rest. False when the connection is closed.
  bool flush(Connection& connection);
  void watch(Connection& connection);
  void answer_released(const Connection& served);
  void refuse(Connection& connection, const std::string& reason);
  void report_refusal(int socket, const std::string& reason);
  void close(StoreClientId id);
  void update_share(const Connection& connection);
  void report_pid(const StoreRequest& ping) const;
  void log(const std::string& line) const;

  EventLoop& loop_;
  StoreServerOptions options_;
  ConnectionAcceptor acceptor_;
  KeyValueTable table_;
  std::unordered_map<StoreClientId, std::unique_ptr<Connection>> connections_;
  ClientShares shares_;
  SocketOwners owners_;
  StoreClientId last_id_ = 0;
  std::size_t clients_seen_ = 0;
  std::unique_ptr<char[]> read_buffer_;  // shared by all connections; made for the first
  SocketPoll poll_;
  RefusalLog refusals_;
  HorovodValues horovod_;
  std::optional<HttpServer> http_;  ///< of `horovod_`; empty where that is not served
};

}  // namespace lrun::launcher
