#include "cluster/detect.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "cluster/local_host.h"
#include "cluster/mpi.h"
#include "cluster/slurm.h"

namespace lrun {
namespace {

/// The nodes of a step: this host, then the others, which are taken to be like it until they say what they have.
Allocation of_step(const SlurmStep& step, AllocatedNode here) {
  Allocation allocation{{std::move(here)},
                        fmt::format("Slurm step {}.{}", step.job, step.step),
                        "SLURM_STEP_ID, SLURM_STEP_NODELIST",
                        meeting_of(step)};
  for (int rank = 0; rank < static_cast<int>(step.hosts.size()); ++rank) {
    if (rank == step.node_rank) continue;
    AllocatedNode other = allocation.nodes.front();
    other.name = step.hosts[static_cast<std::size_t>(rank)];
    allocation.nodes.push_back(std::move(other));
  }
  return allocation;
}

}  // namespace

Allocation detect_allocation(const Questions& questions, const Environment& environment) {
  if (questions.manager) refuse_mpi_tasks(environment);  // before Slurm, whose step may be that of mpirun's daemons
  const std::optional<SlurmStep> step = questions.manager ? slurm_step(environment) : std::nullopt;
  AllocatedNode here = local_host(questions, environment);
  if (step) return of_step(*step, std::move(here));
  Allocation allocation{{std::move(here)}, "this host", "nothing names other nodes"};
  if (questions.manager) allocation.nodes_to_start = nodes_of_batch_script(environment);
  if (allocation.nodes_to_start > 0) {
    allocation.source = fmt::format("Slurm job {}", environment.get("SLURM_JOB_ID").value_or(""));
    allocation.reason = "SLURM_JOB_ID without SLURM_STEP_ID";
  }
  return allocation;
}

}  // namespace lrun
