#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "base/environment.h"
#include "base/event_loop.h"
#include "base/folder.h"
#include "inspect/rank_process.h"
#include "logs/log_router.h"
#include "plan/launch_plan.h"
#include "process/guard.h"
#include "process/progress.h"
#include "process/run_cgroup.h"
#include "process/spawn.h"
#include "process/worker_group.h"
#include "rendezvous/membership.h"
#include "run/worker_output.h"
#include "run/worker_start.h"
#include "supervise/supervisor.h"

namespace lrun::launcher {

/// One attempt of a run: this node's workers, their output and who watches over them. The run (its store, console,
/// signals, folder, reports) outlives it and may make another one. Ends and reaps its workers when destroyed. One
/// thread.
class Attempt {
 public:
  /// What the run lends to its attempts; all of it must outlive them.
  struct Surroundings {
    const LaunchPlan& plan;
    const WorkerStart& start;
    EventLoop& loop;
    LogRouter& logs;
    RunObserver& observer;
    const Guard& guard;             ///< with the cgroup of the run
    Supervisor::Look look = {};     ///< empty: nobody looks where workers are before they are stopped
    bool names_error_files = true;  ///< to workers
  };

  /// \param logs  of the run's log and error files, which has to outlive the attempt; nullptr: there are none.
  /// \param name  of the folder in it for those of this attempt
  Attempt(const Surroundings& surroundings, Membership membership, const Folder* logs, std::string name);
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  ~Attempt();

  /// Called by the loop, each at most once.
  struct Events {
    std::function<void()> finished;  ///< nothing is left to wait for
    std::function<void()> started;   ///< is_starting() is no longer true: all run, or the rest is not to be started
    std::function<void(const StartFailure& failure)>
        start_failed;  ///< after start() had returned; nothing is left running
  };

  /// Starts as many workers as it can in a few hundredths of a second. Nothing is left running after a failure.
  std::optional<StartFailure> start();
  [[nodiscard]] bool is_starting() const { return group_.workers().size() < commands_.size(); }

  /// Takes over the workers' output and ends, after start(), and lets the loop start the rest.
  void supervise(Events events);

  /// SIGCHLD came.
  void child_signalled() { group_.child_signalled(); }

  /// Only from supervise() on.
  [[nodiscard]] Supervisor& supervisor() { return *supervisor_; }
  [[nodiscard]] bool supervised() const { return supervisor_.has_value(); }

  /// Log files are made at their first byte, from now on.
  void open_log_files();
  /// A worker may leave its error file in its folder. Silent workers of short runs never get one.
  void make_rank_folders() const;
  /// Of the folder of its files; empty: there are none.
  [[nodiscard]] const std::filesystem::path& log_path() const { return folder_; }
  /// A file beside those of the ranks, to append to; empty: it cannot be made.
  [[nodiscard]] Fd open_file(const std::string& file) const;
  /// The same when a log file was written, else empty.
  [[nodiscard]] std::filesystem::path written_logs() const;

  /// Training steps that all workers told; 0 where nobody is to tell them.
  [[nodiscard]] std::uint64_t steps() const;
  /// When ranks told their first step, in nanoseconds of the steady clock. Those that told none are left out.
  [[nodiscard]] std::vector<std::pair<int, std::int64_t>> first_steps() const;
  /// All workers, those that have ended with the pid 0.
  [[nodiscard]] std::vector<RankProcess> processes() const;
  /// The workers that have not ended.
  [[nodiscard]] std::vector<RankProcess> running() const;
  /// Ranks of running workers that have no connection to `store_port`.
  [[nodiscard]] std::vector<int> without_connection(int store_port) const;

  /// The rank whose process, or a process below it, has this pid; only the first time, else empty.
  std::optional<int> first_connection(pid_t pid);

  /// Empty unless a worker has lrun's terminal.
  [[nodiscard]] std::optional<TerminalRelay>& terminal() { return output_.terminal(); }

  [[nodiscard]] const Membership& membership() const { return membership_; }
  [[nodiscard]] const std::vector<Worker>& workers() const { return group_.workers(); }

 private:
  void hand_out_progress();
  std::optional<StartFailure> start_some();
  std::optional<StartFailure> start_next();
  std::optional<int> start_more();
  void end_start();
  void terminal_came_back();
  [[nodiscard]] const NodePlan& node() const { return surroundings_.plan.nodes.front(); }

  Surroundings surroundings_;
  Membership membership_;
  const Folder* logs_;
  std::string name_;
  std::filesystem::path folder_;  ///< empty: there are no files
  WorkerOutput output_;
  Fd nothing_;  ///< /dev/null, while workers are started
  GroupCommand command_;
  std::vector<WorkerCommand> commands_;  ///< of all workers; empty when none is left to be started
  Events events_;
  ProgressBoard progress_;  ///< without memory unless somebody will look
  RunCgroup later_cgroup_;  ///< none in the first round, which has the run's
  WorkerGroup group_;
  std::optional<Supervisor> supervisor_;
  std::set<int> connected_;  ///< ranks
};

}  // namespace lrun::launcher
