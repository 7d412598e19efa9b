#pragma once

#include <sys/types.h>

#include <functional>

#include "base/event_loop.h"

namespace lrun::launcher {

/// The parent process, if it may have made a pipe on standard input for this one. 0 where standard input is no pipe, or
/// where the parent has gone, is of another session, or is Slurm's, which gives every task of a step a pipe. To be
/// called in the process that the user started.
pid_t maker_of_input_pipe();

/// Reports once when data comes through a pipe on standard input that no worker reads. Reads nothing itself. An empty
/// pipe, as of a service, is not reported, nor is a pipe that its maker can read: a shell that reads a script or a list
/// through a pipe passes the pipe to all that it starts, and the data is for the shell. One thread.
class UnreadStdin {
 public:
  /// \param maker  maker_of_input_pipe(), not 0
  UnreadStdin(EventLoop& loop, pid_t maker, std::function<void()> data_came);
  UnreadStdin(const UnreadStdin&) = delete;
  UnreadStdin& operator=(const UnreadStdin&) = delete;

 private:
  void look();

  pid_t maker_;
  std::function<void()> data_came_;
  EventLoop::Watch readable_;
};

}  // namespace lrun::launcher
