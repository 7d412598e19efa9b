#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/environment.h"
#include "base/event_loop.h"
#include "inspect/control_socket.h"
#include "inspect/run_processes.h"
#include "logs/log_router.h"
#include "plan/launch_plan.h"
#include "process/guard.h"
#include "process/spawn.h"
#include "report/console_reporter.h"
#include "report/head_channel.h"
#include "run/attempt.h"
#include "run/console_sink.h"
#include "run/hang_monitor.h"
#include "run/job_observer.h"
#include "run/run_folders.h"
#include "run/unread_stdin.h"
#include "run/verbose_log.h"
#include "store/server.h"
#include "supervise/restart_policy.h"
#include "supervise/signal_echo.h"
#include "supervise/signal_source.h"

namespace lrun::launcher {

/// One run of this node, from the store's socket to the verdict: what outlives a single attempt of its workers, and
/// where attempts, store, logs and reports are put together. Lives in the launcher process, below the guard. One
/// thread.
class NodeLauncher {
 public:
  struct Facts {
    std::string program;  ///< as the user typed it
    std::string python;   ///< the interpreter that lrun gives it to; empty: none
    WorkerStart start;
    int verbosity = 0;                 ///< how often -v was given
    std::size_t most_connections = 0;  ///< to the store, at the same time
    bool is_managed = false;           ///< who starts the job's launchers says where they meet
    Job* job = nullptr;                ///< with other nodes; nullptr: alone
    Membership membership = {};        ///< of that job's first attempt here
    pid_t maker_of_input_pipe = 0;     ///< maker_of_input_pipe()
    HeadChannel* head = nullptr;       ///< that started this launcher; nullptr: none did
  };

  /// \throws std::system_error  the store's port is taken, descriptors ran out.
  NodeLauncher(const LaunchPlan& plan, const Environment& environment, Facts facts, EventLoop& loop,
               const Guard& guard);
  ~NodeLauncher();
  NodeLauncher(const NodeLauncher&) = delete;
  NodeLauncher& operator=(const NodeLauncher&) = delete;

  /// Starts, supervises and cleans up.
  Verdict run();

  /// After run(): nothing is left below this process. False when the kernel kept some from ending.
  [[nodiscard]] bool left_nothing() const { return left_nothing_; }

  /// Of this node, in the last attempt.
  [[nodiscard]] int node_rank() const { return node().node_rank; }
  /// The same; 0 for a run that is alone.
  [[nodiscard]] int round() const { return job_ ? job_->membership().round : 0; }

 private:
  Verdict run_attempts();
  std::optional<StartFailure> begin_attempt(int number);
  void attempt_started();
  void attempt_not_started(const StartFailure& failure, int number);
  void no_further_attempt(const std::string& why);
  void start_failed_later(const StartFailure& failure);
  [[nodiscard]] int first_attempt() const { return job_ ? job_->membership().attempt : 0; }
  [[nodiscard]] Attempt::Surroundings surroundings();
  [[nodiscard]] std::shared_ptr<void> look_at_workers();
  void tell_start() const;
  void make_folders();
  void open_record();
  void plan_housework();
  void watch_unread_input();
  void time_is_over(RunEnd::Kind kind, Duration limit, const std::string& who = {});
  void check_network();
  void check_connected();
  [[nodiscard]] bool is_named(int signal_number) const;
  [[nodiscard]] bool is_term_again(int signal_number) const;
  void attempt_over();
  void attempt_judged(const Verdict& verdict, bool final);
  void restart();
  void enter_round();
  void end_early(const RunEnd& end, bool victim = false);
  void tell_missing_liblrun();
  void tell_waiting();
  void stop_run(const Event& event, const RunEnd& end);
  [[nodiscard]] bool stops_for_others() const;
  void open_store();
  void turn_away(const Fd& launcher) const;
  void join_job();
  void take_history(const Membership& membership);
  void use_store_of_job();
  void listen_to_store();
  [[nodiscard]] RunObserver& observer();
  std::string answer(std::string_view command);
  void kill_children();
  void worker_connected(pid_t pid);
  void signal_received(const ReceivedSignal& signal);
  void signal_arrived(int signal_number, bool forwarded);
  void guard_died();
  void conclude();
  bool nothing_survives();
  void leave_result_of(const std::exception& error);
  void write_result(const Verdict& verdict, const std::vector<FailureRecord>& records, const std::string& text);
  Verdict start_failed(const FailureRecord& record);
  [[nodiscard]] MessageSink& sink() {
    return facts_.head != nullptr ? static_cast<MessageSink&>(*facts_.head) : *console_sink_;
  }
  [[nodiscard]] bool colour() const { return facts_.head != nullptr ? facts_.head->colour() : console_sink_->colour(); }
  [[nodiscard]] bool speaks_for_job() const;
  void print_of_job(const std::string& text);
  [[nodiscard]] bool supervised() const { return attempt_ && attempt_->supervised(); }
  [[nodiscard]] const NodePlan& node() const { return plan_.nodes.front(); }

  const Guard& guard_;
  LaunchPlan plan_;  ///< with our place among the nodes of the job, which changes with them
  const Environment& environment_;
  Facts facts_;
  VerboseLog verbose_;
  RunFolders folders_;
  std::int64_t started_ms_ = 0;  ///< since the epoch
  SteadyTime started_ = steady_now();
  EventLoop& loop_;
  std::optional<StoreServer> own_store_;  ///< of a run that is alone
  StoreServer* store_ = nullptr;          ///< nullptr: another node hosts the workers' store
  RunProcesses processes_;
  std::optional<LogRouter> logs_;
  std::optional<ConsoleSink> console_sink_;
  EventLog events_;
  ConsoleReporter reporter_;
  EventLoop::Timer housework_;
  EventLoop::Timer timeout_;
  EventLoop::Timer start_timeout_;
  EventLoop::Timer start_failure_;
  EventLoop::Timer waiting_note_;  ///< while the other nodes' workers go on
  std::optional<ControlSocket> control_;
  std::optional<JobObserver> job_;
  std::unique_ptr<Attempt> attempt_;           ///< the last one that could be started
  std::unique_ptr<Attempt> previous_attempt_;  ///< while not all workers of that one are started
  std::optional<HangMonitor> hang_guard_;
  std::optional<SignalSource> signals_;
  std::optional<UnreadStdin> unread_input_;
  SignalEcho echo_;
  bool told_to_end_ = false;         ///< by a signal
  RestartChoice last_choice_;        ///< and all attempts so far
  std::map<int, int> starts_;        ///< by the number of the attempt: a change of nodes does not count
  std::optional<Verdict> agreed_;    ///< what all nodes of the job say about the last attempt
  std::optional<RunEnd> early_end_;  ///< why the run ends though nothing ran here
  Verdict verdict_;
  bool run_told_ = false;  ///< to events_
  bool concluding_ = false;
  bool guard_died_ = false;
  bool left_nothing_ = false;
};

}  // namespace lrun::launcher
