#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "inspect/run_processes.h"
#include "plan/launch_plan.h"
#include "rendezvous/membership.h"
#include "store/server.h"

namespace lrun::launcher {

/// The workers' store, where this node hosts it. A run that is alone has its own store; in a job it belongs to the Job,
/// and in a later round it may be on another node. One thread.
class WorkersStore {
 public:
  /// The job's store for a round; nullptr: another node hosts it.
  using OfRound = std::function<StoreServer*(const Membership&)>;

  /// Of a run that is alone: opens its port.
  /// \param most_connections  at the same time
  /// \throws std::system_error  the port is taken.
  WorkersStore(EventLoop& loop, const LaunchPlan& plan, std::size_t most_connections);
  /// Of a job: nothing is hosted before enter().
  WorkersStore(const LaunchPlan& plan, OfRound of_round);
  WorkersStore(const WorkersStore&) = delete;
  WorkersStore& operator=(const WorkersStore&) = delete;
  ~WorkersStore();

  /// \param warn  gets a line about clients that were refused
  /// \param connected  gets the pid that a client says it has, when it has connected
  void set_listeners(std::function<void(const std::string& line)> warn, std::function<void(pid_t pid)> connected);

  /// A round begins.
  void enter(const Membership& membership);
  /// A round is over: the store of a run that is alone is emptied; that of a job is not used any more.
  void leave();

  /// The port, of a run that is alone.
  [[nodiscard]] int port() const { return own_ ? own_->port() : 0; }
  /// As many clients have connected as there are workers.
  [[nodiscard]] bool has_seen(std::size_t workers) const { return own_ && own_->clients_seen() >= workers; }
  /// Ranks that Horovod's rendezvous has not seen. Empty: it is not served here, or none is missing.
  [[nodiscard]] std::vector<int> ranks_unseen_by_horovod(int world_size) const;
  /// Prints a last line about refused clients that had no line of their own.
  void report_refusals();

 private:
  void listen();
  void reject(const Fd& launcher) const;

  const LaunchPlan& plan_;
  OfRound of_round_;                ///< empty: the run is alone
  std::optional<StoreServer> own_;  ///< of a run that is alone
  StoreServer* server_ = nullptr;   ///< nullptr: another node hosts it
  RunProcesses processes_;
  std::function<void(const std::string& line)> warn_;
  std::function<void(pid_t pid)> connected_;
};

}  // namespace lrun::launcher
