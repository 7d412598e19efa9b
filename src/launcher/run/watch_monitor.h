#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/log_stream.h"
#include "logs/line_watch.h"
#include "plan/watch_rule.h"
#include "report/event_log.h"
#include "report/message_sink.h"
#include "run/attempt.h"
#include "stop/policy.h"

namespace lrun::launcher {

/// Carries --watch out: looks for its rules in what workers print, warns, and stops or restarts the run. One thread.
class WatchMonitor {
 public:
  struct Facts {
    EventLoop& loop;
    const std::vector<WatchRule>& rules;
    MessageSink& sink;
    EventLog& events;
    std::function<Attempt&()> attempt;  ///< the one that runs now; called while workers run
    /// Ends the run whatever it does now.
    std::function<void(const TimeIsOver& reason)> stop;
    std::function<bool()> is_blocked;  ///< the console takes nothing, so the workers may not be read
  };

  /// All that is named by `facts` must outlive this.
  explicit WatchMonitor(Facts facts);

  /// Takes what a worker has printed. \return react() has something to do.
  bool printed(int rank, LogStream stream, std::string_view bytes);
  /// Warns of what was found, and stops the run where a rule says so.
  void react();
  /// The workers did not run for a while: silence counts from now on.
  void went_on() { watch_.wait_anew(steady_now()); }

  /// At the end of a run: warns of rules that cannot have held, whose pattern may be wrong.
  void warn_of_idle() const;

 private:
  void enter_round();
  void wait();
  void read_unfinished();
  void look_for_silence();
  void react_to(const WatchFinding& finding);

  Facts facts_;
  LineWatch watch_;
  int watched_round_ = -1;
  std::vector<WatchFinding> findings_;  ///< that wait for react()
  EventLoop::Timer silence_;
  SteadyTime silence_due_{};
  EventLoop::Timer unfinished_;
};

}  // namespace lrun::launcher
