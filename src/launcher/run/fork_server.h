#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/fd.h"
#include "process/spawn.h"
#include "run/fork_server_answer.h"
#include "run/unfinished_import.h"

namespace lrun::launcher {

/// A Python that imports modules once and then forks a rank for each start (fork_server.py). A rank is a direct child
/// of this process, which must be a subreaper, as if spawn() had started it. One thread.
class ForkServer {
 public:
  struct Order {
    std::string path;                      ///< of Python, already found
    std::vector<std::string> argv;         ///< the command of a rank
    std::string modules;                   ///< to import, separated by commas; 'auto': what earlier runs imported
    std::string learned;                   ///< the folder in which that is kept
    std::vector<std::string> environment;  ///< NAME=VALUE, while they are imported
    std::string folder;                    ///< to start in; empty: this process's
    std::vector<ProcessLimit> limits;      ///< of the ranks, which inherit them
  };
  /// One of them is called by the loop, once.
  struct Events {
    std::function<void(const std::string& note)> ready;
    std::function<void(const std::string& why)> unfit;  ///< no rank can be forked
  };

  /// Begins to import.
  /// \throws std::system_error  the Python cannot be executed, no descriptors are left, or there are no pidfds.
  ForkServer(EventLoop& loop, Order order, const SpawnDefaults& defaults, Events events);
  /// Ends it, which takes half a second at most; ranks live on.
  ~ForkServer();
  ForkServer(const ForkServer&) = delete;
  ForkServer& operator=(const ForkServer&) = delete;

  /// Of the process; 0 once it has ended.
  [[nodiscard]] pid_t pid() const { return child_->wait_until_ended(Duration::zero()) ? 0 : child_->pid(); }

  /// What it imports at the moment, or did at its end. Empty: nothing.
  [[nodiscard]] std::optional<UnfinishedImport> unfinished_import() const;

  /// A fork has failed, and no other will succeed.
  [[nodiscard]] bool is_given_up() const { return !why_given_up_.empty(); }
  [[nodiscard]] const std::string& why_given_up() const { return why_given_up_; }

  /// How many ranks fork() may be asked for: eight at most, fewer where a fork takes long, and one before that is
  /// known.
  [[nodiscard]] std::size_t at_a_time() const;

  /// Forks ranks, once it is ready. They wait for begin(). Of `requests` the paths, the folders and the limits are not
  /// used: they are those of the order. All have one cgroup. Blocks until the ranks are there, some seconds at most.
  /// Empty on failure: no rank will begin.
  std::vector<PidFd> fork(std::span<const SpawnRequest> requests);

  /// Lets the ranks of the last fork() begin.
  void begin();

 private:
  void receive();
  [[nodiscard]] Events settle();
  void become_unfit(const std::string& why);
  [[nodiscard]] std::string why_ended() const;
  bool send(const std::vector<std::string>& fields, std::vector<int> descriptors) const;
  bool send(const SpawnRequest& request, int go, bool more_follow) const;
  [[nodiscard]] std::optional<ForkServerAnswer> next_answer(Duration limit) const;
  void give_up(std::string why);

  Order order_;
  Events events_;
  Fd channel_;
  Fd import_;  ///< memory in which the server notes what it imports
  std::optional<PidFd> child_;
  EventLoop::Watch readable_;
  int hellos_ = 0;
  std::string why_given_up_;
  Duration rank_time_{};     ///< that a rank took of the last fork(); 0: not known
  Pipe go_;                  ///< from which each rank reads a byte before it begins
  std::size_t waiting_ = 0;  ///< ranks that do
};

}  // namespace lrun::launcher
