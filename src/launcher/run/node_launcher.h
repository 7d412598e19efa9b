#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/environment.h"
#include "base/event_loop.h"
#include "inspect/job_answers.h"
#include "logs/log_router.h"
#include "plan/launch_plan.h"
#include "process/guard.h"
#include "report/console_reporter.h"
#include "report/head_channel.h"
#include "run/attempt_loop.h"
#include "run/fork_server.h"
#include "run/launcher_signals.h"
#include "run/notice_monitor.h"
#include "run/one_voice_sink.h"
#include "run/own_answers.h"
#include "run/rank_look.h"
#include "run/run_ending.h"
#include "run/run_metrics.h"
#include "run/run_record.h"
#include "run/time_limits.h"
#include "run/unread_stdin.h"
#include "run/usage_sampler.h"
#include "run/verbose_log.h"
#include "run/watch_monitor.h"
#include "run/workers_store.h"

namespace lrun::launcher {

/// One run of this node, from the first worker to the verdict: joins attempts, signals, limits, record and ending.
/// Lives in the launcher process, below the guard. One thread.
class NodeLauncher {
 public:
  /// Parts of the launcher, which must outlive the run.
  struct Surroundings {
    EventLoop& loop;
    const Environment& environment;  ///< lrun's own
    const Guard& guard;
    WorkersStore& store;
    LogRouter& logs;
    RunRecord& record;
    LauncherOutput output;
    Clock clock = {};
    LookAtRanks look = look_at_ranks;
  };
  struct Facts {
    std::string program;  ///< as the user typed it
    std::string python;   ///< the interpreter that lrun gives it to; empty: none
    PreparedStart start;
    int verbosity = 0;                             ///< how often -v was given
    JobMember* job = nullptr;                      ///< with other nodes; nullptr: this node is alone
    Membership membership = {};                    ///< of that job's first attempt here
    pid_t maker_of_input_pipe = 0;                 ///< maker_of_input_pipe()
    std::unique_ptr<ForkServer> fork_server = {};  ///< preload(); empty: there is none
    MemoryCopies* copies = nullptr;                ///< of files in memory; nullptr: there are none
    NoticeMonitor* notice = nullptr;               ///< with --notice
  };

  NodeLauncher(const LaunchPlan& plan, const Surroundings& surroundings, Facts facts);
  NodeLauncher(const NodeLauncher&) = delete;
  NodeLauncher& operator=(const NodeLauncher&) = delete;
  ~NodeLauncher();

  /// Starts, supervises and cleans up. Runs the loop.
  /// \throws std::system_error  the machine lacks something; result.json has it.
  Verdict run();

  /// After run(): no process is left below this one. False: the kernel kept one from ending.
  [[nodiscard]] bool left_nothing() const { return left_nothing_; }
  /// Of this node, in the last attempt.
  [[nodiscard]] int node_rank() const { return plan_.nodes.front().node_rank; }
  /// The same; 0 for a run that is alone.
  [[nodiscard]] int round() const;

  /// Answers a command of the control socket: 'status', 'stop', or 'job' and what all launchers of the job are asked.
  void answer(std::string_view command, const ControlSocket::Reply& reply);
  /// For a test: as if this signal had been read.
  void signal_received(const ReceivedSignal& signal) { signals_.received(signal); }

 private:
  [[nodiscard]] LauncherSignals::Facts signal_facts() const;
  void listen_to_workers();
  [[nodiscard]] RunStatus status();
  [[nodiscard]] std::string standstill() const;
  Verdict run_attempts();
  void begun();
  void answer_others();
  std::size_t ask_all(const std::string& question);
  void print_start() const;
  void warn_of_unread_input();
  void warn_of_network();
  void worker_connected(pid_t pid);
  void child_ended();
  void guard_died();
  void signal_arrived(const SignalArrived& signal, bool repeats);
  void conclude();
  void start_failed(const FailureRecord& record);
  [[nodiscard]] bool shares_screen() const;
  [[nodiscard]] bool speaks_for_job() const;

  LaunchPlan plan_;  ///< with our place among the nodes of the job, which changes with them
  Surroundings run_;
  Facts facts_;
  SteadyTime started_;
  std::int64_t started_ms_;  ///< since the epoch
  OneVoiceSink job_sink_;
  VerboseLog verbose_;
  RunEnding ending_;
  ConsoleReporter reporter_;
  TimeLimits limits_;
  AttemptLoop attempts_;
  LauncherSignals signals_;
  std::optional<UnreadStdin> unread_input_;
  std::optional<WatchMonitor> watch_;  ///< with --watch
  UsageSampler usage_;
  std::optional<RunMetrics> metrics_;  ///< with --metrics
  OwnAnswers own_answers_;
  JobAnswers job_answers_;
  Verdict verdict_;
  bool guard_died_ = false;
  bool left_nothing_ = false;
};

}  // namespace lrun::launcher
