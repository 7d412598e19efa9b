#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/environment.h"
#include "base/event_loop.h"
#include "cli/verbose_log.h"
#include "inspect/control_socket.h"
#include "inspect/run_directory.h"
#include "logs/log_router.h"
#include "plan/launch_plan.h"
#include "process/spawn.h"
#include "rendezvous/membership.h"
#include "report/console_reporter.h"
#include "store/server.h"
#include "supervise/signal_source.h"
#include "supervise/supervisor.h"

namespace lrun {

/// One run of this node's workers, from the store's socket to the verdict: where store, logs, workers, supervisor and
/// reports are put together. Lives in the launcher process, below the guard. One thread.
class NodeRun {
 public:
  struct Facts {
    std::string program;           ///< as the user typed it
    std::string executable;        ///< plan.argv[0] as found on PATH
    SpawnDefaults spawn_defaults;  ///< of lrun before it changed anything
    int verbosity = 0;             ///< how often -v was given
  };

  /// \throws std::system_error  the store's port is taken, descriptors ran out.
  NodeRun(const LaunchPlan& plan, const Environment& environment, Facts facts);

  /// Starts, supervises and cleans up: nothing is left below this process when it returns.
  Verdict run();

 private:
  std::optional<StartFailure> start_workers();
  void tell_start() const;
  void take_over_output();
  void open_run_directory();
  void make_rank_folders();
  std::string answer(std::string_view command);
  void signal_arrived(int signal_number, pid_t sender);
  [[nodiscard]] Duration console_patience() const;
  void conclude();
  [[nodiscard]] std::filesystem::path written_logs() const;
  Verdict start_failed(const StartFailure& failure);
  void say(const std::string& text);
  void warn(const std::string& text);
  [[nodiscard]] const NodePlan& node() const { return plan_.nodes.front(); }

  const LaunchPlan& plan_;
  const Environment& environment_;
  Facts facts_;
  VerboseLog verbose_;
  std::filesystem::path run_folder_;
  std::filesystem::path attempt_folder_;  ///< empty: no log files
  EventLoop loop_;                        ///< outlives everything that watches it
  StoreServer store_;
  Membership membership_;
  WorkerGroup group_;
  std::optional<LogRouter> logs_;
  std::optional<RunDirectory> run_directory_;
  EventLog events_;
  ConsoleReporter reporter_;
  EventLoop::Timer housework_;
  std::optional<ControlSocket> control_;
  std::optional<Supervisor> supervisor_;
  std::optional<SignalSource> signals_;
  Verdict verdict_;
  bool concluding_ = false;
  bool guard_died_ = false;
};

}  // namespace lrun
