#pragma once

#include <sys/types.h>

#include <functional>

#include "base/event_loop.h"

namespace lrun::launcher {

/// Whoever started this process and may have made a pipe for it: 0 where standard input is no pipe, or where that is
/// not known, since the starter has gone, is of another session, or is Slurm's, which gives every task of a step a
/// pipe. To be asked in the process that the user started.
pid_t maker_of_input_pipe();

/// Says once when data comes through a pipe on standard input that no worker reads. Reads nothing itself, so that an
/// empty pipe, as of a service, says nothing. Nor does one that its maker could read, then, on any descriptor: a shell
/// that reads a script or a list through a pipe passes that on to all it starts, and what is in it is for the shell.
/// One thread.
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
