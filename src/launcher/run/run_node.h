#pragma once

#include <cstddef>

#include "base/environment.h"
#include "base/event_loop.h"
#include "plan/launch_plan.h"
#include "process/guard.h"
#include "rendezvous/job.h"
#include "report/head_channel.h"
#include "run/node_launcher.h"

namespace lrun::launcher {

/// Facts about the run of this node that launch() knows before it begins.
struct NodeRun {
  NodeLauncher::Facts facts;         ///< `job` is set by run_node()
  Job* job = nullptr;                ///< with other nodes; nullptr: this node is alone
  std::size_t most_connections = 0;  ///< to the workers' store, at the same time
  CopierProcess* copier = nullptr;   ///< of files in memory, between nodes; nullptr: there is none
  bool is_managed = false;           ///< the endpoint comes from the scheduler that starts the job's launchers
};

/// The outcome of a node's run.
struct NodeRunEnd {
  Verdict verdict;
  bool left_nothing = false;  ///< no process of its workers is left
};

/// Opens what a run needs (store, log router, record, console) and runs the workers of this node.
/// \throws std::system_error  the store's port is taken, or descriptors ran out.
NodeRunEnd run_node(const LaunchPlan& plan, const Environment& environment, NodeRun run, EventLoop& loop,
                    const Guard& guard, const LauncherOutput& output);

}  // namespace lrun::launcher
