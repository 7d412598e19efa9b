#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/event_loop.h"
#include "process/worker_group.h"
#include "run/worker_output.h"

namespace lrun::launcher {

/// Starts the workers of one attempt in parts of a few hundredths of a second, so that everything else (signals, other
/// nodes, workers that have ended) is handled in between. One thread.
class WorkerStarter {
 public:
  /// Everything must outlive this.
  WorkerStarter(EventLoop& loop, WorkerGroup& group, WorkerOutput& output, const SpawnDefaults& defaults)
      : loop_(loop), group_(group), output_(output), defaults_(defaults) {}

  /// Sets the workers to start. To be called once, before start_some().
  void set_commands(GroupCommand common, std::vector<WorkerCommand> commands);

  /// Starts the next part. No worker is left running after a failure.
  std::optional<StartFailure> start_some();
  /// The number of workers that are still to be started.
  [[nodiscard]] std::size_t left() const { return commands_.size() - started_; }
  /// Call it when the rest will not be started, or nothing is left.
  void end();

 private:
  std::optional<StartFailure> start_next();

  EventLoop& loop_;
  WorkerGroup& group_;
  WorkerOutput& output_;
  const SpawnDefaults& defaults_;
  GroupCommand common_;
  std::vector<WorkerCommand> commands_;  ///< of all workers; empty when none is left to be started
  std::size_t started_ = 0;
};

}  // namespace lrun::launcher
