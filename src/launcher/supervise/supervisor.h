#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/pausable_timer.h"
#include "logs/log_router.h"
#include "plan/launch_plan.h"
#include "process/guard.h"
#include "process/memory_watch.h"
#include "process/worker_group.h"
#include "stop/policy.h"
#include "verdict/explain.h"

namespace lrun::launcher {

/// Is told what happens to a run, as it happens, on the loop's thread. Reports and events are written here.
class RunObserver {
 public:
  RunObserver() = default;
  RunObserver(const RunObserver&) = delete;
  RunObserver& operator=(const RunObserver&) = delete;
  virtual ~RunObserver() = default;

  virtual void worker_ended(const FailureRecord& record) = 0;
  /// A worker failed; before the others are stopped they have `moment` to tell more.
  virtual void settling(const FailureRecord& failed, Duration moment) = 0;
  /// The run begins to stop. `cause` is the failed worker to blame, or nullptr when none failed. `others` still run.
  virtual void stopping(const RunEnd& end, const FailureRecord* cause, int others) = 0;
  virtual void killing(int others) = 0;
  /// The program that had lrun's terminal has left it. `others` still run.
  virtual void terminal_came_back(int rank, int others) = 0;
  virtual void suspended() = 0;
  virtual void resumed() = 0;
};

/// What a supervised attempt came to.
struct RunOutcome {
  RunEnd end;
  std::vector<FailureRecord> records;  ///< one a worker, in the order of their ends
  std::vector<RankPlace> places = {};  ///< where workers were before they were stopped, if anybody looked
};

/// How workers that are still to be started are started by the loop, in parts, so that it handles other events
/// meanwhile.
struct GradualStart {
  int left = 0;
  /// Starts some of them. \return how many are left; empty: it failed and nothing runs. The supervisor is not to be
  /// used afterwards.
  std::function<std::optional<int>()> more;
  std::function<void()> over;  ///< none is left: all run, or the start was called off
};

/// Watches one attempt of one node's workers until none is left and all their output was taken over. What an ended
/// worker left in its process group (the program behind a shell) has the rest of the grace, like the workers.
///
/// Joins loop, workers, logs and policy: every decision is decide()'s. One thread.
class Supervisor {
 public:
  /// Begins to look where the running workers are. saw_workers() is to be called soon, by the loop, unless the result
  /// is destroyed before.
  using Look = std::function<std::shared_ptr<void>()>;

  struct Facts {
    std::string host;
    int attempt = 0;
    Duration grace{0};
    Duration settle{0};
    Duration settle_for_victims{0};
    Duration settle_at_start{0};
    std::filesystem::path error_folder = {};  ///< <local rank>/error.json below it is a worker's own account
    std::filesystem::path cgroup = {};        ///< of the workers alone; empty: there is none
    bool workers_write_files = false;         ///< some of their streams go to files in error_folder, past lrun
    Look look = {};                           ///< empty: nobody looks before workers are stopped
    const Guard* guard = nullptr;             ///< kills workers, by its death or itself; nullptr: there is none
  };

  /// A worker that owns lrun's descriptors has no streams in `logs`. Everything must outlive the supervisor.
  Supervisor(EventLoop& loop, WorkerGroup& group, const NodePlan& node, LogRouter& logs, RunObserver& observer,
             Facts facts);

  /// Takes over the workers' ends. When nothing is left to wait for, `finished` is called once, by the loop.
  void begin(std::function<void()> finished, GradualStart start = {});

  /// After `finished`: waits for the time of the next attempt, then calls `again`; or `finished` when the run is to end
  /// first. Called by the loop, once, and then this supervisor may be destroyed. What happens before `again` is called
  /// still calls it off.
  void back_off(Duration delay, std::function<void()> again, std::function<void()> finished);

  /// What happened outside: a signal, the console, the control socket.
  void handle(const Event& event);
  /// Somebody has looked where the running workers are.
  void saw_workers(std::vector<RankPlace> places);
  /// Something that the end waits for may have happened: a worker's output was taken over, an orphan ended.
  void look_again();

  [[nodiscard]] const SupervisionState& state() const { return state_; }
  [[nodiscard]] RunOutcome outcome() const { return {state_.end, records_, places_}; }
  /// Some worker did not end when it was killed, and is waited for no more.
  [[nodiscard]] bool gave_up() const;
  /// True of a worker that has not been reaped.
  [[nodiscard]] bool is_worker(pid_t pid) const;

 private:
  void worker_ended(Worker& worker, const ExitStatus& status);
  [[nodiscard]] FailureRecord begin_record(const Worker& worker) const;
  FailureRecord make_record(const Worker& worker, const ExitStatus& status);
  void start_more();
  void note_started();
  void call_off_start();
  void note_guards_kill(const Worker& worker, const ExitStatus& status);
  EndFacts end_facts(const FailureRecord& record);
  void mark_stopped(int signal_number);
  void finish_when_nothing_is_left();
  void take_over_output();
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
  const NodePlan& node_;
  LogRouter& logs_;
  RunObserver& observer_;
  Facts facts_;
  SupervisionState state_;
  MemoryWatch memory_;
  PausableTimer grace_;
  PausableTimer settle_;
  GradualStart start_;
  PausableTimer next_start_;
  EventLoop::Timer kill_limit_;
  PausableTimer backoff_;
  std::deque<Event> pending_;  ///< an action may cause events: they wait until its decision is carried out
  bool deciding_ = false;
  std::function<void()> finished_;
  std::function<void()> again_;
  bool starts_again_ = false;
  EventLoop::Timer finish_;
  std::vector<FailureRecord> records_;
  std::vector<RankPlace> places_;
  std::shared_ptr<void> looking_;
  std::vector<int> stop_signals_;  ///< by worker index: the last signal lrun sent to it
  std::set<int> passed_on_;        ///< signals that all workers were sent because lrun was
  std::map<pid_t, std::size_t> pids_;
};

}  // namespace lrun::launcher
