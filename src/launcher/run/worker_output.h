#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "base/fd.h"
#include "logs/log_router.h"
#include "logs/terminal_relay.h"
#include "plan/launch_plan.h"
#include "process/worker_group.h"
#include "run/attempt_files.h"

namespace lrun::launcher {

/// Gives the workers of one attempt the descriptors that the plan decided on, and the streams that lrun reads to the
/// router. The order of calls: for each part of the workers prepare(), their start, close_workers_ends(),
/// adopt_streams(); then, once, end_start().
class WorkerOutput {
 public:
  /// Everything must outlive this.
  WorkerOutput(const LaunchPlan& plan, const NodePlan& node, const AttemptFiles& files);

  /// Sets the descriptors in the commands, which are those of the node's workers from index `first` on. Makes the files
  /// that these workers write themselves.
  /// \throws std::system_error  a file cannot be made.
  void prepare(std::span<WorkerCommand> commands, std::size_t first);
  /// Call it when the prepared workers were started, or their start has failed.
  void close_workers_ends() { open_.clear(); }

  /// Moves the streams of the workers that were started since the last call into `logs`. `workers`: all so far.
  void adopt_streams(std::vector<Worker>& workers, LogRouter& logs);

  /// Call it when no further worker is started. Begins to relay the terminal where a worker has lrun's; calls
  /// `terminal_left` once when that worker leaves it while the attempt goes on.
  void end_start(LogRouter& logs, EventLoop& loop, std::function<void()> terminal_left);

  /// Empty: no worker has lrun's terminal.
  [[nodiscard]] std::optional<TerminalRelay>& terminal() { return relay_; }

  /// Some worker writes a stream to its file itself.
  static bool workers_write_files(const OutputPlan& output, const NodePlan& node);

 private:
  int descriptor_for(const WorkerPlan& worker, LogStream stream);
  int keep(Fd fd);
  int terminal_for(const WorkerPlan& worker, LogStream stream);

  const LaunchPlan& plan_;
  const NodePlan& node_;
  const AttemptFiles& files_;
  std::vector<Fd> open_;
  std::map<std::pair<int, LogStream>, Fd> terminals_;  ///< our ends, by local rank
  std::optional<TerminalRelay> relay_;
  Fd null_;  ///< /dev/null, once it was needed
  std::size_t adopted_ = 0;
};

/// The router's options for the workers' output.
LogOptions log_options(const LaunchPlan& plan);

}  // namespace lrun::launcher
