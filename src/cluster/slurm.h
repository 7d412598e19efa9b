#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "cluster/allocation.h"

namespace lrun {

/// What Slurm tells one of srun's tasks, of which every node has one: each starts the launcher of its node.
struct SlurmStep {
  std::string job;    ///< '12'
  std::string step;   ///< '0'
  int node_rank = 0;  ///< in the step, not in the job
  std::vector<std::string> hosts;

  bool operator==(const SlurmStep&) const = default;
};

/// The step that `environment` is in. SLURM_JOB_ID alone is no step: the batch script and the shell of salloc have it.
/// \return empty: no step, one of a single task, or a worker of another launcher in a step.
/// \throws UserError  a node has several tasks, which would each start all of its workers; the variables cannot be read
/// or do not agree (a heterogeneous job).
std::optional<SlurmStep> slurm_step(const Environment& environment);

/// Where the launchers of a step meet: the first host of the step, and a port that follows from job and step, so that
/// two steps on one host hardly get the same. It is below those that the kernel gives to connections.
JobPlace meeting_of(const SlurmStep& step);

/// The number of nodes of the job whose batch script (or shell of salloc) this process runs in: srun has to start
/// something on each. 0: no such script, or one node.
int nodes_of_batch_script(const Environment& environment);

}  // namespace lrun
