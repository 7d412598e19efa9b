#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "base/fd.h"
#include "rendezvous/coordinator.h"
#include "store/refusal_log.h"
#include "store/server.h"

namespace lrun::launcher {

/// The rendezvous of a job, served by its leader: takes the connections of all launchers, its own one included, and
/// lets the Coordinator decide. The socket is bound in the constructor and kept, so that no other process gets the
/// port. Its server is also a store: launchers and workers can use one port.
///
/// Never blocks. A connection begins with the Handshake, and no message is taken before. A launcher that is silent for
/// the heartbeat is lost; a connection that does not join within it is closed. One thread.
class RendezvousServer {
 public:
  struct Options {
    std::uint16_t port = 0;
    int listener = -1;  ///< as StoreServerOptions has it
    StoreReach reach = StoreReach::kNetwork;
    std::string address = {};  ///< numeric: only this one of the host's addresses; empty: as `reach` says
    RendezvousTimes times;
    MergeReports merge;  ///< what is made of the reports of a round
    std::size_t max_store_connections = 4096;
    bool serves_horovod = false;          ///< as StoreServerOptions has it
    std::size_t max_launchers = 4096;     ///< connections of them; one more takes the place of one that has not joined
    std::string own_token = {};           ///< as Coordinator::Options has it
    std::vector<std::string> hosts = {};  ///< the same
    std::string secret = {};              ///< that every launcher has to know; empty: none
    bool members_elect_leader = false;    ///< as Coordinator::Options has it
    /// Gets a line about launchers that were rejected: in the handshake, as RefusalLog has it, or by the Coordinator.
    /// May be empty. Must not call the server.
    std::function<void(const std::string& line)> rejected = {};
    /// A round has begun: the state from which another launcher could lead. May be empty. Must not call the server.
    std::function<void(const JobState& state)> begun = {};
  };

  /// \throws std::system_error  EADDRINUSE: another process has the port.
  RendezvousServer(EventLoop& loop, const Options& options);
  ~RendezvousServer();
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;

  /// Before any launcher has joined: as Coordinator::resume().
  void resume(const JobState& state, const std::optional<Ballot>& ballot);

  /// As Coordinator::redirect_to().
  void redirect_to(const std::optional<RendezvousAddress>& target);
  [[nodiscard]] const std::optional<RendezvousAddress>& redirect() const { return coordinator_.redirect(); }
  /// A round has begun here.
  [[nodiscard]] bool has_begun() const { return coordinator_.rounds_begun() > 0; }

  /// As Coordinator::who_is_there().
  [[nodiscard]] std::string who_is_there() const { return coordinator_.who_is_there(); }

  [[nodiscard]] StoreServer& server() { return server_; }

  /// Ends as if the process had ended: nothing is sent, and the port is closed.
  void abandon();

  /// A last line to Options::rejected, about launchers that were only counted, if there are any.
  void report_rejections();

  /// No launcher is left that could need the rendezvous. `when_over` is called once, by the loop, when that becomes
  /// true.
  [[nodiscard]] bool over() const;
  void on_over(std::function<void()> when_over);

 private:
  struct Connection;

  void accept(Fd socket, const std::string& bytes);
  bool make_room();
  void report_rejection(const Connection& connection, const std::string& why);
  void read_from(Connection& connection);
  void feed(Connection& connection, std::string_view bytes);
  bool shake_hands(Connection& connection, std::string_view bytes);
  void serve(Connection& connection);
  void acknowledge(Connection& connection, const LauncherMessage& heartbeat);
  void send_all();
  std::string push(Connection& connection, std::string_view bytes);
  void flush(Connection& connection);
  void refuse(Connection& connection, const std::string& why);
  void probe(Connection& connection);
  /// \param may_run  as Coordinator::left() has it
  void lose(ConnectionId who, const std::string& how, bool may_run);
  void close(ConnectionId id);
  void find_silent();
  void arm();

  EventLoop& loop_;
  RendezvousTimes times_;
  std::size_t max_launchers_;
  std::string secret_;
  std::function<void(const std::string& line)> rejected_;
  std::function<void(const JobState& state)> begun_;
  int rounds_reported_ = 0;
  RefusalLog rejections_{"rejected a launcher at", "rejected"};
  Coordinator coordinator_;
  std::map<ConnectionId, std::unique_ptr<Connection>> connections_;
  ConnectionId last_id_ = 0;
  EventLoop::Timer deadline_;
  EventLoop::Timer silence_check_;
  SteadyTime next_check_;  ///< when the next launcher can have been silent for too long
  std::function<void()> when_over_;
  EventLoop::Timer report_over_;
  StoreServer server_;  ///< the last: it calls us
};

}  // namespace lrun::launcher
