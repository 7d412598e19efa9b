#pragma once

#include <functional>
#include <vector>

#include "process/spawn.h"

namespace lrun::inline core {

/// One child that goes on in a copy of this process, without a program of its own.
struct ForkRequest {
  std::function<int()> function;  ///< what it runs; it ends with the code, without destructors and exit handlers
  int standard_input = 0;
  int standard_output = 1;
  int standard_error = 2;
  std::vector<int> descriptors;  ///< that it keeps beside those three, in ascending order; all others are closed
};

/// Starts it as spawn() does: leader of a session of its own, no signal blocked, SIGKILL as its parent-death signal.
/// INT, TERM, HUP and QUIT get their default action unless they are ignored: what the parent does about them is the
/// parent's. Where fork gives no pidfd the child is known by its pid. The caller must have one thread.
SpawnResult fork_child(const ForkRequest& request);

/// The open descriptors of this process, ascending. Empty without /proc.
std::vector<int> open_descriptors();

}  // namespace lrun::inline core
