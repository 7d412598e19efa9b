#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "logs/log_router.h"
#include "plan/launch_plan.h"
#include "process/worker_group.h"

namespace lrun::launcher {

/// A node with a worker for each rank from 0 on.
inline NodePlan node_with(std::size_t workers) {
  NodePlan node;
  node.name = "here";
  for (int rank = 0; rank < static_cast<int>(workers); ++rank)
    node.workers.push_back({rank, rank, 0, {}, {}, {}, {}, 0});
  return node;
}

/// Starts a shell for each script, in the order of ranks, and gives its output to `logs`.
inline void start_shells(EventLoop& loop, WorkerGroup& group, LogRouter& logs,
                         const std::vector<std::string>& scripts) {
  std::vector<WorkerCommand> commands;
  for (const std::string& script : scripts) {
    const int rank = static_cast<int>(group.workers().size() + commands.size());
    commands.push_back({rank, rank, {"/bin/sh", "-c", script}, {}});
  }
  const std::size_t first = group.workers().size();
  if (group.start(loop, {.path = "/bin/sh", .shared_environment = {"PATH=/usr/bin:/bin"}}, commands,
                  SpawnDefaults::of_this_process())) {
    throw std::runtime_error("a shell could not be started");
  }
  for (std::size_t i = first; i < group.workers().size(); ++i) {
    Worker& worker = group.workers()[i];
    logs.add_stream(worker.rank, worker.local_rank, LogStream::kOut, std::move(worker.standard_output), {});
    logs.add_stream(worker.rank, worker.local_rank, LogStream::kErr, std::move(worker.standard_error), {});
  }
}

}  // namespace lrun::launcher
