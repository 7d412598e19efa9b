#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "cluster/allocation.h"

namespace lrun::launcher {

/// What Slurm tells one of srun's tasks. Where every node has one, each starts the launcher of its node; where one has
/// several, each starts that of a rank.
struct SlurmStep {
  std::string job;    ///< '12'
  std::string step;   ///< '0'
  int node_rank = 0;  ///< in the step, not in the job
  std::vector<std::string> hosts;
  std::vector<int> tasks = {};  ///< on each of the hosts
  int rank = 0;                 ///< of this task in the step; it does not follow from the others (srun -m cyclic)
  int local_rank = 0;           ///< of this task on its node

  /// A launcher a rank, not a node.
  [[nodiscard]] bool has_several_a_node() const;
  bool operator==(const SlurmStep&) const = default;
};

/// The step that `environment` is in. SLURM_JOB_ID alone is no step: the batch script and the shell of salloc have it.
/// \return empty: no step, one of a single task, or a worker of another launcher in a step.
/// \throws UserError  the variables cannot be read or do not agree (a heterogeneous job).
std::optional<SlurmStep> slurm_step(const Environment& environment);

/// The tasks of the step that `environment` is in, also where users say themselves how launchers meet; 0: no step, or
/// its variables cannot be read.
int tasks_of_step(const Environment& environment);

/// Where the launchers of a step meet: the first host of the step (this machine alone where there is no other), and a
/// port that follows from job and step, so that two steps on one host hardly get the same. It is below those that the
/// kernel gives to connections.
JobPlace meeting_of(const SlurmStep& step);

/// Whether Slurm ends what runs here. It then says TERM several times, before a preemption twice within a millisecond,
/// and KILL itself when its own patience is over: who hears TERM again is not asked to hurry.
bool repeats_term(const Environment& environment);

/// What Slurm gave to its job on this node, also where a task may use only some of it; 0: it does not say.
struct SlurmShare {
  int gpus = 0;
  int cpus = 0;

  bool operator==(const SlurmShare&) const = default;
};
SlurmShare share_of_node(const Environment& environment);

/// What one task on each node of a job has to ask srun for, so that it gets all GPUs which the job asked for with
/// --gpus-per-task: '4', 'a100:4'. Empty: it asked in another way, and srun gives all by itself.
/// \throws UserError  the job has more tasks on some nodes than on others, so that no such number is right on all.
std::string gpus_per_node(const Environment& environment);

/// Tells the launchers of a step that lrun made what tasks_asked_per_node() was where it was typed.
inline constexpr const char* kTasksAsked = "LRUN_NTASKS_PER_NODE";

/// The tasks that a job asked for on each node with --ntasks-per-node: what its script means by as many workers, where
/// nothing else says how many. 0: it did not, or this is neither its batch script nor the shell of salloc, nor a
/// launcher that lrun started from there.
int tasks_asked_per_node(const Environment& environment);

/// The number of nodes of the job whose batch script (or shell of salloc) this process runs in: srun has to start
/// something on each. 0: no such script, or one node.
/// \throws UserError  of a heterogeneous job, which has them in several components.
int nodes_of_batch_script(const Environment& environment);

}  // namespace lrun::launcher
