#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "cluster/allocation.h"

namespace lrun::launcher {

/// The step of one of srun's tasks. With one task per node each task is the launcher of its node. With several on a
/// node each task is the launcher of one rank.
struct SlurmStep {
  std::string job;    ///< '12'
  std::string step;   ///< '0'
  int node_rank = 0;  ///< in the step, not in the job
  std::vector<std::string> hosts;
  std::vector<int> tasks = {};  ///< on each of the hosts
  int rank = 0;                 ///< of this task in the step; no other field implies it (srun -m cyclic)
  int local_rank = 0;           ///< of this task on its node

  /// One launcher per rank, not per node.
  [[nodiscard]] bool has_several_a_node() const;
  bool operator==(const SlurmStep&) const = default;
};

/// The step that `environment` belongs to. SLURM_JOB_ID by itself is not a step: the batch script and the shell of
/// salloc have it, too. \return empty without a step, in a step of a single task, and in a worker of another launcher.
/// \throws UserError  the variables cannot be read or contradict each other (a heterogeneous job).
std::optional<SlurmStep> slurm_step(const Environment& environment);

/// The tasks of the step that `environment` belongs to, also where the user names the rendezvous. 0 without a step, or
/// when its variables cannot be read.
int tasks_of_step(const Environment& environment);

/// The rendezvous of a step's launchers: the first host of the step (loopback when it is the only one), and a port that
/// follows from job and step, so that two steps on one host rarely get the same.
JobPlace job_place_of(const SlurmStep& step);

/// How Slurm's commands name the job that `environment` belongs to, with the step in it, the one that squeue prints
/// first: '31', '31.0'; of a task of an array '30_2.0' and '33.0'. Empty outside of a job.
std::vector<std::string> slurm_job_names(const Environment& environment);

/// Whether Slurm ends the processes here. Slurm sends TERM several times, before a preemption twice within a
/// millisecond, and KILL when its own time limit is over. A second TERM therefore does not ask lrun to hurry.
bool repeats_term(const Environment& environment);

/// The share of this node that Slurm gave to its job, also where a task may use only a part of it. 0: unknown.
struct SlurmShare {
  int gpus = 0;
  int cpus = 0;

  bool operator==(const SlurmShare&) const = default;
};
SlurmShare share_of_node(const Environment& environment);

/// The GPUs that one task on each node has to request from srun to get all that the job requested with --gpus-per-task:
/// '4', 'a100:4'. Empty when the job requested them in another way, because srun then gives all by itself.
/// \throws UserError  the nodes have different numbers of tasks, so that no number is right for all.
std::string gpus_per_node(const Environment& environment);

/// Passes the value of tasks_asked_per_node() from the lrun that was typed to the launchers of the step that it starts.
inline constexpr const char* kTasksAsked = "LRUN_NTASKS_PER_NODE";

/// The tasks per node that a job requested with --ntasks-per-node. They are the number of workers where the user gives
/// no other. 0 without such a request, and outside of the batch script, the shell of salloc, and the launchers that
/// lrun starts from there.
int tasks_asked_per_node(const Environment& environment);

/// The tasks that a job requested with --ntasks alone, which says nothing of the tasks of a node. 0 without such a
/// request, and outside of the batch script and the shell of salloc.
int tasks_asked_in_all(const Environment& environment);

/// The nodes of the job in whose batch script (or shell of salloc) this process runs.
struct BatchNodes {
  int count = 0;              ///< 0: there is no such job
  bool has_this_host = true;  ///< false: salloc was typed on another host, most often a login node

  bool operator==(const BatchNodes&) const = default;
};

/// \param this_host  its name, as uname prints it. \throws UserError  a heterogeneous job, which has nodes in several
/// components.
BatchNodes nodes_of_batch_script(const Environment& environment, const std::string& this_host);

}  // namespace lrun::launcher
