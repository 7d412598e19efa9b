#pragma once

#include "remote/frames.h"
#include "report/head_channel.h"

namespace lrun::launcher {

/// What the launcher of a node has besides its order when the job is to begin.
struct NodeStart {
  NodeGo go;
  int listener = -1;                     ///< a socket that listens where the nodes meet; -1: that is another node's
  int messages = -1;                     ///< a pipe for lrun's own messages, as frames
  const HeadSignals* signals = nullptr;  ///< that the head has passed on; lives as long as the process
};

/// Runs the workers of one node of a job as its order says, in this process, which is the order's alone: its
/// environment is replaced. \return the exit code of lrun.
int run_host_order(const NodeOrder& order, const NodeStart& start);

}  // namespace lrun::launcher
