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

/// The meeting point of a job, held by the launcher that owns the endpoint's address: takes the connections of all
/// launchers, the own one included, and lets the Coordinator decide. The socket is bound in the constructor and kept:
/// nobody can take the port. Its server is also a store, so that launchers and workers can come to one port.
///
/// Never blocks. Whoever connects has to show that it is a launcher, with the same secret where there is one, before
/// anything else is taken from it. A launcher that says nothing for the heartbeat is lost; whoever connects and does
/// not join within it is closed. One thread.
class RendezvousServer {
 public:
  struct Options {
    std::uint16_t port = 0;
    int listener = -1;  ///< as StoreServerOptions has it
    StoreReach reach = StoreReach::kNetwork;
    std::string address = {};  ///< numeric: only this one of the host's addresses; empty: as `reach` says
    RendezvousTimes times;
    GatherReports gather;  ///< what is made of the reports of a round
    std::size_t max_store_connections = 4096;
    bool serves_horovod = false;       ///< as StoreServerOptions has it
    std::size_t max_launchers = 4096;  ///< connections of them; one more takes the place of one that has not joined
    std::string own_token = {};        ///< the token of the own launcher, which joins first; empty: any may
    std::string secret = {};           ///< that every launcher has to know; empty: none
    bool guards_majority = false;      ///< as Coordinator::Options has it
    /// Gets a line about launchers that were turned away: before they could say anything, as RefusalLog has it, or by
    /// the Coordinator. May be empty. Must not call the holder.
    std::function<void(const std::string& line)> rejected = {};
    /// A round has begun: what another launcher has to know to hold the meeting instead. May be empty. Must not call
    /// the holder.
    std::function<void(const JobState& state)> begun = {};
  };

  /// \throws std::system_error  EADDRINUSE: somebody else holds the port.
  RendezvousServer(EventLoop& loop, const Options& options);
  ~RendezvousServer();
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;

  /// Before anybody has joined: as Coordinator::resume().
  void resume(const JobState& state, const std::optional<Ballot>& ballot);

  /// As Coordinator::redirect_to().
  void redirect_to(const std::optional<RendezvousAddress>& target);
  [[nodiscard]] const std::optional<RendezvousAddress>& redirect() const { return coordinator_.redirect(); }
  /// Here.
  [[nodiscard]] bool has_begun() const { return coordinator_.rounds_begun() > 0; }

  [[nodiscard]] StoreServer& server() { return server_; }

  /// As a holder whose process has ended: nobody is told anything, nobody finds us any more.
  void abandon();

  /// A last line to rejected, about those that were only counted; none when there are none.
  void report_rejections();

  /// Nobody is left who could need the meeting. `when_over` is called once, by the loop, when that becomes true.
  [[nodiscard]] bool over() const;
  void on_over(std::function<void()> when_over);

 private:
  struct Connection;

  void take_over(Fd socket, const std::string& bytes);
  bool make_room();
  void report_rejection(const Connection& connection, const std::string& why);
  void read_from(Connection& connection);
  void feed(Connection& connection, std::string_view bytes);
  bool shake_hands(Connection& connection, std::string_view bytes);
  void serve(Connection& connection);
  void answer_beat(Connection& connection, const LauncherMessage& beat);
  void send_all();
  std::string push(Connection& connection, std::string_view bytes);
  void flush(Connection& connection);
  void refuse(Connection& connection, const std::string& why);
  void find_out_about(Connection& connection);
  /// \param may_run  as Coordinator::left() has it
  void lose(LauncherId who, const std::string& how, bool may_run);
  void close(LauncherId id);
  void look_for_silent_ones();
  void arm();

  EventLoop& loop_;
  RendezvousTimes times_;
  std::size_t max_launchers_;
  std::string secret_;
  std::function<void(const std::string& line)> rejected_;
  std::function<void(const JobState& state)> begun_;
  int rounds_told_ = 0;
  RefusalLog refusals_{"turned away a launcher at", "turned away"};
  Coordinator coordinator_;
  std::map<LauncherId, std::unique_ptr<Connection>> connections_;
  LauncherId last_id_ = 0;
  EventLoop::Timer deadline_;
  EventLoop::Timer look_again_;
  SteadyTime look_at_;  ///< when the next one can have been silent for too long
  std::function<void()> when_over_;
  EventLoop::Timer tell_over_;
  StoreServer server_;  ///< the last: it calls us
};

}  // namespace lrun::launcher
