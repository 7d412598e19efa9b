#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/fd.h"
#include "plan/rendezvous_plan.h"
#include "rendezvous/join_record.h"
#include "rendezvous/rendezvous_server.h"
#include "store/listening_socket.h"
#include "store/server.h"

namespace lrun::launcher {

/// The servers of a job on this node: the rendezvous where this launcher leads, the workers' store or the port that is
/// kept for the worker that hosts it, and the port at which this launcher may become leader. Its JoinRecord carries the
/// ports to the others. One thread.
class JobServers {
 public:
  struct Options {
    RendezvousPlan plan;
    JoinRecord record;   ///< of this node; the ports are filled in here
    MergeReports merge;  ///< what is made of the reports of a round
    std::size_t max_store_connections = 4096;
    std::string secret = {};                                ///< that all launchers share; empty: none
    std::function<void(const std::string& line)> rejected;  ///< as RendezvousServer::Options::rejected
    std::function<void(const JobState& state)> begun;       ///< as RendezvousServer::Options::begun
  };

  /// Serves the rendezvous if the plan wants that, or allows it and no other launcher on this machine does.
  /// \throws std::system_error  a port is taken, descriptors ran out.
  JobServers(EventLoop& loop, Options options);

  [[nodiscard]] const JoinRecord& record() const { return options_.record; }
  /// That of the job from its first round on, for a leader that knows of none.
  void take_run_id(const std::string& run_id) { options_.record.run_id = run_id; }
  /// The address of these servers for this launcher itself.
  [[nodiscard]] std::string own_address() const { return address_.empty() ? "127.0.0.1" : address_; }
  /// As Job::open_place().
  [[nodiscard]] std::string open_place() const;
  /// This launcher owns the endpoint, though the job may meet elsewhere by now.
  [[nodiscard]] bool owns_endpoint() const { return owns_endpoint_; }

  /// The rendezvous that is served here; null: none.
  [[nodiscard]] RendezvousServer* rendezvous() const { return rendezvous_.get(); }
  /// Serves it at a port that the kernel chooses. \throws std::system_error
  void lead() { serve(0, -1, false); }
  /// Serves it at the port that the others know from record(), after a lost leader.
  void lead_from_standby();
  void stop_leading() { rendezvous_.reset(); }
  /// Ends as if this process had been killed: without a message, so that the others go on without it.
  void abandon();

  /// The job meets elsewhere: the rendezvous here redirects others there, and this launcher joins as a member.
  void hand_away();
  /// Nothing came of that: serves the rendezvous again.
  void serve_again();
  /// Where launchers are redirected that come to the endpoint here; empty: it is not here, or they meet here.
  [[nodiscard]] std::optional<RendezvousAddress> redirect() const;
  /// This launcher has joined there. Nothing happens where no rendezvous was handed away.
  void redirect_to(const RendezvousAddress& target);

  /// An empty store for the next round; with c10d on another port. Pointers to the last one are void.
  void open_store();
  /// The workers' store where this node hosts it; else closes it and is null.
  StoreServer* store_for(const Membership& membership);
  /// A last line about launchers that were rejected and had none of their own.
  void report_rejections();

  /// Connections of launchers that a rendezvous takes at the same time.
  static std::size_t most_launchers(const RendezvousPlan& plan);

 private:
  void serve_if_ours();
  void serve(int port, int listener, bool is_failover);
  void open_standby();

  EventLoop& loop_;
  Options options_;
  StoreReach reach_;
  std::string address_;  ///< where all of the job that is here listens; empty: as reach_ says
  std::unique_ptr<RendezvousServer> rendezvous_;
  std::unique_ptr<RendezvousServer> handed_away_;  ///< redirects others
  std::unique_ptr<RendezvousServer> abandoned_;    ///< closed, but its store may be in use
  bool owns_endpoint_ = false;
  bool rank_is_by_default_ = false;     ///< this node asked for rank 0 because it serves the endpoint
  bool store_is_rendezvous_ = false;    ///< the workers' store is at the endpoint, which is here
  std::unique_ptr<StoreServer> store_;  ///< empty where the rendezvous' is the workers' store, or another node hosts it
  Fd standby_;
  bool is_open_to_network_ = false;
};

}  // namespace lrun::launcher
