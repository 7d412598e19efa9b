#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "base/event_loop.h"
#include "inspect/rank_process.h"
#include "logs/log_router.h"
#include "plan/launch_plan.h"
#include "process/guard.h"
#include "process/progress.h"
#include "process/run_cgroup.h"
#include "process/worker_group.h"
#include "rendezvous/membership.h"
#include "run/attempt_files.h"
#include "run/memory_copies.h"
#include "run/prepared_start.h"
#include "run/worker_output.h"
#include "run/worker_starter.h"
#include "supervise/supervisor.h"

namespace lrun::launcher {

/// One attempt of a run: this node's workers, their output, and the supervisor of both. The run (its store, console,
/// signals, folder, reports) outlives it and may make another one. The destructor ends and reaps the workers. One
/// thread.
class Attempt {
 public:
  /// Parts of the run, which must outlive its attempts.
  struct Surroundings {
    const LaunchPlan& plan;
    const PreparedStart& start;
    EventLoop& loop;
    LogRouter& logs;
    RunObserver& observer;
    const Guard& guard;                     ///< the process above lrun that a shell sees; with the cgroup of the run
    Supervisor::Look look = {};             ///< samples the workers' stacks before they are stopped; empty: not sampled
    bool names_error_files = true;          ///< to workers
    std::shared_ptr<Spawner> spawner = {};  ///< in the place of core::spawn()
    MemoryCopies* copies = nullptr;         ///< may hold the workers back; nullptr: there is none
  };

  Attempt(const Surroundings& surroundings, Membership membership, AttemptFiles files);
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  ~Attempt();

  /// The loop calls each at most once, but `connected`.
  struct Events {
    std::function<void()> finished;  ///< nothing is left to wait for
    std::function<void()> started;   ///< is_starting() became false: all workers run, or the rest will not start
    /// The start failed after start() had returned. No worker is left running.
    std::function<void(const StartFailure& failure)> start_failed;
    std::function<void()> connected = [] {};  ///< a worker has connected to the run's store for the first time
  };

  /// Starts as many workers as it can in a few hundredths of a second. No worker is left running after a failure.
  std::optional<StartFailure> start();
  [[nodiscard]] bool is_starting() const { return starter_.left() > 0; }
  /// No worker starts before files of a lost node have come.
  [[nodiscard]] bool waits_for_files() const;

  /// After start(): handles the workers' output and ends from now on, and lets the loop start the rest.
  void supervise(Events events);

  /// Call it on SIGCHLD.
  void child_signalled() { group_.child_signalled(); }

  /// Only from supervise() on.
  [[nodiscard]] Supervisor& supervisor() { return *supervisor_; }
  [[nodiscard]] bool supervised() const { return supervisor_.has_value(); }

  [[nodiscard]] const AttemptFiles& files() const { return files_; }
  /// From now on a log file is created at its first byte.
  void open_log_files();
  /// The folder of the log files when one was written, else empty.
  [[nodiscard]] std::filesystem::path written_logs() const;

  /// The sum of the training steps that the workers reported; 0 where they do not report steps.
  [[nodiscard]] std::uint64_t steps() const;
  /// Of one of workers(); zero where it does not report steps.
  [[nodiscard]] Progress progress(std::size_t worker) const { return progress_.of(worker); }
  /// When each rank reported its first step, in nanoseconds of the steady clock. Ranks without one are left out.
  [[nodiscard]] std::vector<std::pair<int, std::int64_t>> first_steps() const;
  /// All workers; the pid of one that has ended is 0.
  [[nodiscard]] std::vector<RankProcess> processes() const;
  /// The workers that have not ended.
  [[nodiscard]] std::vector<RankProcess> running() const;
  /// Ranks of running workers that have no connection to the run's store.
  [[nodiscard]] std::vector<int> without_connection() const;

  /// The worker whose process, or a process below it, has this pid; nullptr: there is none.
  [[nodiscard]] const Worker* worker_of(pid_t pid) const;
  /// The rank of worker_of() such a process. Empty when there is none, and from the second call for the same rank on.
  std::optional<int> first_connection(pid_t pid);

  /// Empty: no worker has lrun's terminal.
  [[nodiscard]] std::optional<TerminalRelay>& terminal() { return output_.terminal(); }

  [[nodiscard]] const Membership& membership() const { return membership_; }
  [[nodiscard]] const std::vector<Worker>& workers() const { return group_.workers(); }

 private:
  [[nodiscard]] Supervisor::Facts supervision() const;
  void make_cgroup();
  std::optional<int> start_more();
  void end_start();
  void terminal_came_back();
  [[nodiscard]] const NodePlan& node() const { return surroundings_.plan.nodes.front(); }
  /// The cgroup that the workers start in; may be empty.
  [[nodiscard]] const RunCgroup& cgroup() const {
    return membership_.round > 0 ? later_cgroup_ : surroundings_.guard.cgroup();
  }

  Surroundings surroundings_;
  Membership membership_;
  AttemptFiles files_;
  WorkerOutput output_;
  Fd null_;                 ///< /dev/null for reading, while workers are started
  ProgressBoard progress_;  ///< has memory only where workers report there
  RunCgroup later_cgroup_;  ///< empty in the first round, which uses the run's cgroup
  WorkerGroup group_;
  WorkerStarter starter_;
  Events events_;
  std::optional<Supervisor> supervisor_;
  std::set<int> connected_;  ///< ranks
};

}  // namespace lrun::launcher
