#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/event_loop.h"
#include "base/pausable_timer.h"
#include "logs/log_router.h"
#include "plan/launch_plan.h"
#include "process/guard.h"
#include "process/worker_group.h"
#include "stop/policy.h"
#include "supervise/end_recorder.h"
#include "supervise/run_observer.h"

namespace lrun::launcher {

/// Workers that are still to be started. The loop starts them in parts, so that it handles other events meanwhile.
struct GradualStart {
  int left = 0;
  /// Starts some of them. \return how many are left. Empty: the start has failed, nothing runs, and the supervisor must
  /// not be used any more.
  std::function<std::optional<int>()> more;
  /// Gets a function to call, once, when the first may start. Empty: they may start at once.
  std::function<void(std::function<void()> begin)> when_ready = {};
  std::function<void()> over;  ///< no worker is left to be started: all run, or the start was called off
};

/// Watches one attempt of one node's workers until none is left and all their output was read. An ended worker may
/// leave processes in its group (the program behind a shell): they have the rest of the grace period, like the workers.
///
/// Joins loop, workers, logs and policy. decide() makes every decision; this class turns events into its input and
/// carries its actions out. One thread.
class Supervisor {
 public:
  /// Begins to look where the running workers are. The loop then calls saw_workers() soon, unless the result is
  /// destroyed before.
  using Look = std::function<std::shared_ptr<void>()>;

  struct Facts {
    EndRecorder::Facts records;
    Duration grace{0};
    Duration settle{0};
    Duration settle_for_victims{0};
    Duration settle_at_start{0};
    bool workers_get_term = false;  ///< the cluster's manager sends TERM to them, too, when it sends it to lrun
    Look look = {};                 ///< empty: workers are not sampled before they are stopped
    const Guard* guard = nullptr;   ///< kills workers, by its death or itself; nullptr: no guard
  };

  /// A worker that has lrun's own descriptors has no streams in `logs`. Everything must outlive the supervisor.
  Supervisor(EventLoop& loop, WorkerGroup& group, const NodePlan& node, LogRouter& logs, RunObserver& observer,
             Facts facts);

  /// Handles the workers' ends from now on. When nothing is left to wait for, the loop calls `finished` once.
  void begin(std::function<void()> finished, GradualStart start = {});

  /// After `finished`: waits for the time of the next attempt and calls `again`, or `finished` when the run is to end
  /// before. The loop calls one of them, once, and then this supervisor may be destroyed. Any event before the call of
  /// `again` can still call it off.
  void back_off(Duration delay, std::function<void()> again, std::function<void()> finished);

  /// Handles an event from outside: a signal, the console, the control socket.
  void handle(const Event& event);
  /// Takes the places of the running workers, as Look found them.
  void saw_workers(std::vector<RankPlace> places);
  /// Call it when the end may have come: a worker's output was read to its end, or an orphan ended.
  void check_finished();

  [[nodiscard]] const SupervisionState& state() const { return state_; }
  [[nodiscard]] const std::vector<FailureRecord>& records() const { return records_; }
  [[nodiscard]] RunOutcome outcome() const { return {state_.end, records_, places_}; }
  /// A worker did not end when it was killed, and lrun waits for it no longer.
  [[nodiscard]] bool gave_up() const;
  /// True of a worker that has not been reaped.
  [[nodiscard]] bool is_worker(pid_t pid) const;

 private:
  void worker_ended(Worker& worker, const ExitStatus& status);
  void start_more();
  void call_off_start();
  void note_guards_kill(const Worker& worker, const ExitStatus& status);
  void mark_stopped(int signal_number);
  void finish_when_nothing_is_left();
  void end_remaining_output();
  void start_again_when_confirmed();

  void apply(const Announce& action);
  void apply(const LookAtWorkers& action);
  void apply(const ArmSettle& action);
  void apply(const StopWorkers& action);
  void apply(const PassOn& action);
  void apply(const ArmGrace& action);
  void apply(const KillGroups& action);
  void apply(const GiveUp& action);
  void apply(const Suspend& action);
  void apply(const Resume& action);
  void apply(const Finish& action);
  void apply(const ArmBackoff& action);
  void apply(const ConfirmStart& action);
  void apply(const StartAgain& action);

  EventLoop& loop_;
  WorkerGroup& group_;
  LogRouter& logs_;
  RunObserver& observer_;
  Facts facts_;
  EndRecorder recorder_;
  SupervisionState state_;
  PausableTimer grace_;
  PausableTimer settle_;
  GradualStart start_;
  PausableTimer next_start_;
  EventLoop::Timer kill_limit_;
  PausableTimer backoff_;
  std::deque<Event> pending_;  ///< an action may cause events; they wait until its decision is carried out
  bool deciding_ = false;
  std::function<void()> finished_;
  std::function<void()> again_;
  bool starts_again_ = false;
  EventLoop::Timer finish_;
  std::vector<FailureRecord> records_;
  std::vector<RankPlace> places_;
  std::shared_ptr<void> looking_;
};

}  // namespace lrun::launcher
