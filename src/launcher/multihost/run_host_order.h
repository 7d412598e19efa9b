#pragma once

#include "remote/frames.h"
#include "report/head_channel.h"

namespace lrun::launcher {

/// The go and the descriptors that a node's launcher has when the job is to begin, besides its order.
struct NodeStart {
  NodeGo go;
  int listener = -1;                     ///< a socket that listens for the rendezvous; -1: another node has it
  int messages = -1;                     ///< a socket for lrun's own messages and questions of the head, as frames
  const HeadSignals* signals = nullptr;  ///< that the head has passed on; lives as long as the process
};

/// Runs the workers of one node of a job as its order says. Replaces the environment of this process, which does
/// nothing else. \return the exit code of lrun.
int run_host_order(const NodeOrder& order, const NodeStart& start);

}  // namespace lrun::launcher
