#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/child_query.h"
#include "base/event_loop.h"
#include "logs/log_router.h"
#include "plan/launch_plan.h"
#include "process/guard.h"
#include "report/console_reporter.h"
#include "report/message_sink.h"
#include "run/attempt.h"
#include "run/fork_server.h"
#include "run/hang_monitor.h"
#include "run/job_observer.h"
#include "run/memory_copies.h"
#include "run/newest_checkpoint.h"
#include "run/notice_monitor.h"
#include "run/rank_look.h"
#include "run/restarts.h"
#include "run/run_ending.h"
#include "run/run_record.h"
#include "run/standstill_monitor.h"
#include "run/time_limits.h"
#include "run/workers_store.h"

namespace lrun::launcher {

/// The attempts of a run, one after the other: begins each, judges it when it is over, alone or with the other nodes of
/// the job, and begins the next one or ends the run. One thread.
class AttemptLoop {
 public:
  /// Parts of the run, which must outlive the loop.
  struct Surroundings {
    LaunchPlan& plan;  ///< with this node's place among the nodes of the job, which changes with them
    const PreparedStart& start;
    EventLoop& loop;
    LogRouter& logs;
    const Guard& guard;
    WorkersStore& store;
    RunRecord& record;
    ConsoleReporter& reporter;
    TimeLimits& limits;
    MessageSink& sink;
    MessageSink& job_sink;              ///< for what all launchers of a job print
    LookAtRanks look;                   ///< where workers are, before they are stopped
    bool shares_screen = false;         ///< people read in one place what all launchers of the job print
    ForkServer* fork_server = nullptr;  ///< forks the workers; nullptr: there is none
    MemoryCopies* copies = nullptr;     ///< of files in memory, between nodes; nullptr: there are none
    NoticeMonitor* notice = nullptr;    ///< with --notice
    /// Asks all launchers of the job for standing_still() or stacks, as JobAnswers::ask().
    std::function<void(std::string_view words, const ControlSocket::Reply& reply)> ask_job = {};
  };
  struct Events {
    std::function<void()> begun;    ///< workers of the first attempt run
    std::function<void()> started;  ///< all workers of an attempt run, or the rest will not be started
    /// The program cannot be executed for a worker of a later attempt, or for one of the first attempt that was not
    /// started with the others: the run is over.
    std::function<void(const FailureRecord& record)> start_failed;
    std::function<void()> over;  ///< no attempt follows: result() is complete
  };

  /// \param job  with other nodes, and `membership` of its first attempt here; nullptr: this node is alone
  AttemptLoop(const Surroundings& surroundings, JobMember* job, const Membership& membership, Events events);
  AttemptLoop(const AttemptLoop&) = delete;
  AttemptLoop& operator=(const AttemptLoop&) = delete;
  ~AttemptLoop() = default;

  /// Begins the first attempt. \return empty, or the failure where the program cannot be executed: nothing runs then.
  /// \throws std::system_error  the machine lacks something.
  std::optional<FailureRecord> begin();

  /// Somebody here wants the run to end: `event` for the workers, `end` where none run.
  void stop(const Event& event, const RunEnd& end);
  void guard_died();

  /// The last attempt that could be started; only once begin() has returned.
  [[nodiscard]] Attempt& attempt() const { return *attempt_; }
  [[nodiscard]] bool supervised() const { return attempt_ != nullptr; }
  [[nodiscard]] bool is_over() const { return over_; }
  /// nullptr: this node is alone.
  [[nodiscard]] const JobObserver* job() const { return job_ ? &*job_ : nullptr; }
  /// Nothing runs here, and this node waits for others.
  [[nodiscard]] bool waits() const { return job_ && job_->waits(); }

  /// For the other launchers of the job: where the ranks here stand still.
  [[nodiscard]] LauncherStacks standing_still() const;

  /// Ends what the workers left behind. \return false when something runs on.
  [[nodiscard]] bool clean_up();
  /// The outcome of the run so far.
  [[nodiscard]] RunResult result() const;
  /// Call it when the run is over: nothing more comes from the job. `text`: how the run ended; empty: it succeeded.
  void leave_job(const std::string& text);

 private:
  std::optional<StartFailure> begin_attempt();
  void go_on();
  [[nodiscard]] Attempt::Surroundings attempt_surroundings();
  [[nodiscard]] std::shared_ptr<void> look_at_workers();
  void attempt_started();
  void start_failed_later(const StartFailure& failure);
  void attempt_not_started(const StartFailure& failure, int number, bool is_first);
  void attempt_over();
  void attempt_left(const NewestCheckpoints& found);
  void tell_supervisor(const Event& event);
  void attempt_judged(const Verdict& verdict, bool final);
  void back_off(const Verdict& verdict);
  void wait_for_next_round();
  void restart();
  void enter_round();
  void stop_early(const RunEnd& end, bool victim);
  void end();
  [[nodiscard]] const NodePlan& node() const { return run_.plan.nodes.front(); }

  Surroundings run_;
  Events events_;
  std::optional<JobObserver> job_;
  std::unique_ptr<Attempt> attempt_;           ///< the last one that could be started
  std::unique_ptr<Attempt> previous_attempt_;  ///< while not all workers of that one are started
  std::optional<HangMonitor> hang_monitor_;
  std::optional<StandstillMonitor> standstill_;
  std::optional<ChildQuery> checkpoint_look_;  ///< between the end of an attempt and its verdict
  Restarts restarts_;
  EventLoop::Timer housework_;
  EventLoop::Timer start_failure_;
  EventLoop::Timer waiting_note_;    ///< while the other nodes' workers go on
  std::optional<Verdict> agreed_;    ///< of all nodes of the job, about the last attempt
  std::optional<RunEnd> early_end_;  ///< why the run ends though nothing ran here
  bool guard_died_ = false;
  bool over_ = false;
};

}  // namespace lrun::launcher
