#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "base/fd.h"
#include "base/folder.h"
#include "logs/log_router.h"
#include "logs/terminal_relay.h"
#include "plan/launch_plan.h"
#include "process/worker_group.h"

namespace lrun::launcher {

/// Gives the workers of one attempt the descriptors that the plan decided on, and hands what is taken over to the
/// router. Used once an attempt. For each part of the workers: prepare(), their start, close_workers_ends(),
/// take_over(); then, once, end_start().
class WorkerOutput {
 public:
  /// \param logs  of the run's log files; nullptr: there are none. \param attempt  the folder in it that this attempt's
  /// are in. Everything must outlive this.
  WorkerOutput(const LaunchPlan& plan, const NodePlan& node, const Folder* logs, const std::string& attempt);

  /// Sets the descriptors in the commands, which are of the node's workers from index `first` on; makes the files that
  /// these workers write to themselves.
  /// \throws std::system_error  a file cannot be made.
  void prepare(std::span<WorkerCommand> commands, std::size_t first);
  /// Once the prepared workers were started, or could not be.
  void close_workers_ends() { open_.clear(); }

  /// Moves the streams of the workers that were started since the last call into `logs`. `workers`: all so far.
  void take_over(std::vector<Worker>& workers, LogRouter& logs);

  /// No further worker is started. The terminal of the one that has lrun's begins to work, and `terminal_left` is told
  /// once when that one leaves it while the attempt goes on.
  void end_start(LogRouter& logs, EventLoop& loop, std::function<void()> terminal_left);

  /// Empty unless a worker has lrun's terminal.
  [[nodiscard]] std::optional<TerminalRelay>& terminal() { return relay_; }

  /// Some stream of these workers goes to a file without passing through lrun.
  static bool workers_write_files(const OutputPlan& output, const NodePlan& node);

 private:
  [[nodiscard]] std::string place_of(int local_rank, LogStream stream) const;
  int descriptor_for(const WorkerPlan& worker, LogStream stream);
  int keep(Fd fd);
  int terminal_for(const WorkerPlan& worker, LogStream stream);

  const LaunchPlan& plan_;
  const NodePlan& node_;
  const Folder* logs_;
  const std::string& attempt_;
  std::vector<Fd> open_;
  std::map<std::pair<int, LogStream>, Fd> terminals_;  ///< our ends, by local rank
  std::optional<TerminalRelay> relay_;
  Fd nowhere_;  ///< /dev/null, once it was needed
  std::size_t taken_over_ = 0;
};

/// How the router is to treat what it takes over.
LogOptions log_options(const LaunchPlan& plan, const NodePlan& node, bool files);

}  // namespace lrun::launcher
