#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/log_stream.h"
#include "logs/line_watch.h"
#include "plan/watch_rule.h"
#include "report/message_sink.h"
#include "run/attempt.h"

namespace lrun::launcher {

/// Carries --watch out: looks for its rules in what workers print, warns, and stops or restarts the run. One thread.
class WatchMonitor {
 public:
  /// \param attempt  the one that runs now; called while workers run
  /// Everything must outlive this.
  WatchMonitor(EventLoop& loop, const std::vector<WatchRule>& rules, MessageSink& sink,
               std::function<Attempt&()> attempt);

  /// Takes what a worker has printed. Calls nobody but the loop: what follows from it happens in the loop's next turn.
  void printed(int rank, LogStream stream, std::string_view bytes);

  /// At the end of a run: warns of rules that have seen no line, whose pattern may be wrong.
  void warn_of_unmatched() const;

 private:
  void wait_for_silence();
  void look_for_silence();
  void react();
  void react_to(const WatchFinding& finding);

  EventLoop& loop_;
  const std::vector<WatchRule>& rules_;
  MessageSink& sink_;
  std::function<Attempt&()> attempt_;
  LineWatch watch_;
  int watched_attempt_ = -1;
  std::vector<WatchFinding> findings_;  ///< that wait for react()
  EventLoop::Timer reaction_;
  EventLoop::Timer silence_;
};

}  // namespace lrun::launcher
