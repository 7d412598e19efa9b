#pragma once

#include "base/environment.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "process/guard.h"
#include "report/message_sink.h"

namespace lrun::launcher {

/// Ends this launcher, as TERM does, when the process is gone that mpirun, jsrun or flux has on this host for its
/// tasks: where that is killed, they live on. A stop that goes on keeps its grace period. Does nothing for a launcher
/// that has left the task (nohup in a script that ends, setsid, tmux), where the environment of a process in between
/// cannot be read, and without pidfds.
class StopWithMpirun {
 public:
  /// Everything must outlive this.
  StopWithMpirun(EventLoop& loop, const Environment& environment, const Guard& guard, MessageSink& sink);

 private:
  Fd starter_;
  EventLoop::Watch watch_;
};

}  // namespace lrun::launcher
