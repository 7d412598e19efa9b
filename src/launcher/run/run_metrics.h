#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/user_error.h"
#include "inspect/rank_meter.h"
#include "inspect/run_status.h"
#include "plan/launch_plan.h"
#include "plan/metrics_target.h"
#include "report/message_sink.h"
#include "store/connection_acceptor.h"
#include "store/http_server.h"

namespace lrun::launcher {

/// The place of this launcher's metrics: that of the plan, or another one where several launchers would share it. A
/// file of a job gets the name of the host, and where each rank has a launcher of its own, port and file the local
/// rank. A port may then be above 65535. Pure.
MetricsTarget metrics_target(const LaunchPlan& plan);

/// Why the file of metrics cannot be written there, or must not, since something else would be lost. Empty: it can.
std::optional<UserError> problem_of_metrics_file(const std::filesystem::path& file);

/// Offers the metrics of this launcher's ranks while they run: at a port to whoever asks over HTTP, or in a file that
/// everybody may read. At a port nothing is done unless somebody asks; an answer serves for a second, at most
/// kMostConnections are open, and one more closes the oldest. A file is replaced every kInterval, and a last time when
/// the run ends. What cannot be offered causes a warning, and the run goes on. One thread.
class RunMetrics {
 public:
  struct Facts {
    EventLoop& loop;
    MetricsTarget target;
    MessageSink& sink;
    std::function<RunStatus()> status;  ///< of this launcher, without the use of CPU and memory
    bool reads_output = false;          ///< of workers: one that printed nothing has been quiet since it started
  };

  /// Begins at once. Everything must outlive this.
  explicit RunMetrics(Facts facts);
  RunMetrics(const RunMetrics&) = delete;
  RunMetrics& operator=(const RunMetrics&) = delete;

  /// The run has ended: nobody can ask any more.
  void end(int exit_code);

  static constexpr std::size_t kMostConnections = 8;
  static constexpr Duration kInterval{10'000};

 private:
  void listen();
  void add(Fd socket);
  [[nodiscard]] std::string answer(const HttpRequest& request);
  void write_again();
  void write(std::optional<int> exit_code);
  [[nodiscard]] std::string text(std::optional<int> exit_code);
  void keep_cpu_time(WorkerStatus& worker);
  void warn(const std::string& what);

  Facts facts_;
  RankMeter meter_;
  std::map<int, std::pair<pid_t, std::int64_t>> cpu_ms_;  ///< of each rank: its process, and the most that was seen
  std::string answer_;
  SteadyTime answered_{};  ///< when `answer_` was made
  std::optional<HttpServer> server_;
  std::optional<ConnectionAcceptor> acceptor_;
  EventLoop::Timer next_;
  bool has_warned_ = false;
};

}  // namespace lrun::launcher
