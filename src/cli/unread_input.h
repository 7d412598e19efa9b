#pragma once

#include <functional>

#include "base/event_loop.h"

namespace lrun {

/// Standard input is a pipe that was made for this lrun: the process that started it is known to have another input, or
/// none. A shell that reads a script or a list through a pipe passes that on to all it starts, and what is in it is for
/// the shell. To be asked in the process that the user started.
bool has_pipe_of_its_own();

/// Says once when data comes through a pipe on standard input that no worker reads. Reads nothing itself, so that an
/// empty pipe, as of a service, says nothing. One thread.
class UnreadInput {
 public:
  UnreadInput(EventLoop& loop, std::function<void()> data_came);
  UnreadInput(const UnreadInput&) = delete;
  UnreadInput& operator=(const UnreadInput&) = delete;

 private:
  void look();

  std::function<void()> data_came_;
  EventLoop::Watch readable_;
};

}  // namespace lrun
