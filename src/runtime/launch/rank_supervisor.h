#pragma once

#include <deque>
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
#include "stop/policy.h"
#include "verdict/explain.h"

namespace lrun::detail {

/// The ranks to start, and how to treat them.
struct RankOrder {
  std::vector<WorkerCommand> ranks;
  GroupCommand group;
  std::string host;
  int node_rank = 0;
  Duration timeout{0};  ///< 0: none
  Duration grace{0};
};

/// Starts the ranks of a launch and stays until all have ended. It is the only code of its process, whose signals are
/// blocked and whose children the ranks are. Ranks are stopped as lrun stops its workers: decide() makes every
/// decision.
///
/// Its input are signals: INT, TERM, HUP or QUIT stop the ranks by that signal, TSTP pauses everything with all clocks
/// until CONT, and after the parent's death the ranks are killed at once.
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
  void reap_children();
  void on_ended(const Worker& worker, const ExitStatus& status);
  [[nodiscard]] FailureRecord record_of(const Worker& worker, const ExitStatus& status);
  [[nodiscard]] EndFacts facts_of(const FailureRecord& record);

  void handle(const Event& event);
  void apply(const Announce& action);
  void apply(const ArmSettle& action);
  void apply(const StopWorkers& action);
  void apply(const ArmGrace& action);
  void apply(const KillGroups& action);
  void apply(const GiveUp& action);
  void apply(const Suspend& action);
  void apply(const Resume& action);
  void apply(const Finish& action);
  void apply(const auto& /*action*/) {}  // ranks are not watched for hangs, nor started again
  void finish_when_nothing_is_left();
  void end_descendants();

  RankOrder order_;
  const LaunchBoard& board_;
  pid_t parent_;
  EventLoop loop_;
  Fd signals_;
  EventLoop::Watch signal_watch_;
  PausableTimer deadline_{loop_};
  PausableTimer settle_{loop_};
  PausableTimer grace_{loop_};
  PausableTimer last_words_{loop_};  ///< for a reader of stderr, once no rank is left
  EventLoop::Timer kill_limit_;
  MemoryWatch memory_;
  ErrorRelay relay_{loop_};
  std::vector<std::unique_ptr<RankErrors>> errors_;  // by local rank; watched by address
  WorkerGroup group_;
  SupervisionState state_;
  std::deque<Event> pending_;  ///< an action may cause events: they wait until its decision is carried out
  bool deciding_ = false;
  LaunchEnd result_;
  int signal_sent_ = 0;  ///< the last one to the ranks; 0: none
};

}  // namespace lrun::detail
