#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "base/pausable_timer.h"
#include "process/memory_watch.h"
#include "process/worker_group.h"
#include "runtime/launch/board.h"
#include "runtime/launch/error_relay.h"
#include "runtime/launch/launch_end.h"
#include "runtime/launch/rank_errors.h"
#include "verdict/explain.h"

namespace lrun::detail {

/// What a supervisor starts, and how it treats it.
struct RankOrder {
  std::vector<WorkerCommand> ranks;
  GroupCommand group;
  std::string host;
  int node_rank = 0;
  Duration timeout{0};  ///< 0: none
  Duration grace{0};
};

/// Starts the ranks of a launch and stays until all have ended: alone, in a process of its own whose signals are
/// blocked and whose children they are. What comes from outside is a signal: INT, TERM, HUP or QUIT to stop the ranks
/// with it (a second one kills them), TSTP to stand still with all clocks until CONT, and the parent's death, after
/// which they are killed at once.
class RankSupervisor {
 public:
  /// \param parent  the process that launches. \param board  must outlive this object.
  /// \throws std::system_error  no descriptor.
  RankSupervisor(RankOrder order, const LaunchBoard& board, pid_t parent);

  /// Nothing is left below this process when it returns.
  LaunchEnd run();

 private:
  void start();
  void watch_signals();
  void read_signals();
  void on_signal(int signal_number);
  void on_ended(const Worker& worker, const ExitStatus& status);
  [[nodiscard]] FailureRecord record_of(const Worker& worker, const ExitStatus& status);
  [[nodiscard]] EndFacts facts_of(const FailureRecord& record);
  void react_to(const FailureRecord& record);
  void suspend();
  void resume();
  void all_ended();
  void stop(const RunEnd& end, int signal_number);
  void kill();
  void give_up();
  void end_descendants();

  RankOrder order_;
  const LaunchBoard& board_;
  pid_t parent_;
  EventLoop loop_;
  Fd signals_;
  EventLoop::Watch signal_watch_;
  PausableTimer deadline_{loop_};
  PausableTimer patience_{loop_};  ///< of the step that the stopping has reached
  MemoryWatch memory_;
  ErrorRelay relay_{loop_};
  std::vector<std::unique_ptr<RankErrors>> errors_;  // by local rank; watched by address
  WorkerGroup group_;
  LaunchEnd result_;
  bool stopping_ = false;
  bool suspended_ = false;
  int signal_sent_ = 0;  ///< the last one to the ranks; 0: none
};

}  // namespace lrun::detail
