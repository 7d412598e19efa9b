#pragma once

#include <optional>

#include "base/environment.h"
#include "base/event_loop.h"
#include "process/guard.h"
#include "remote/srun_watch.h"
#include "report/message_sink.h"

namespace lrun::launcher {

/// Ends this launcher when the srun is gone with which another lrun started it: by HUP, and, when that takes too long,
/// by KILL to its guard, which ends everything. Does nothing in a step that a user's own srun began.
class StopWithSrun {
 public:
  /// Everything must outlive this.
  StopWithSrun(EventLoop& loop, const Environment& environment, const Guard& guard, MessageSink& sink);

 private:
  void end();

  EventLoop& loop_;
  const Guard& guard_;
  MessageSink& sink_;
  EventLoop::Timer kill_;
  std::optional<SrunWatch> watch_;
};

}  // namespace lrun::launcher
