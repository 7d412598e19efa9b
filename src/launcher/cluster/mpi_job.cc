#include "cluster/mpi_job.h"

#include <algorithm>
#include <array>

#include "cluster/host_lists.h"

namespace lrun::launcher {
namespace {

/// The variables that a starter of tasks sets.
struct TaskVariables {
  const char* manager;
  const char* rank;
  const char* size;
  const char* local_size;
  const char* nodes;  ///< empty: there is no such variable
  const char* job;    ///< equal for all tasks; empty: there is no such variable
  const char* one_a_node;
};

// Flux sets PMI_RANK too, so it stands before MPICH. Slurm's PMI does not count the tasks of a host; mpi_job() leaves
// Slurm's tasks to the reader of steps.
constexpr std::array kStarters{
    TaskVariables{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                  "OMPI_MCA_orte_num_nodes", "PMIX_NAMESPACE", "mpirun --map-by ppr:1:node"},
    TaskVariables{"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_SIZE", "", "LSB_JOBID",
                  "jsrun --rs_per_host 1 --tasks_per_rs 1"},
    TaskVariables{"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "", "FLUX_JOB_NNODES", "FLUX_JOB_ID",
                  "flux run --tasks-per-node=1"},
    TaskVariables{"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "", "", "mpiexec -ppn 1"}};

/// The tasks on this host. Where only nodes are counted: those of the fullest node at least. Where nothing is: all.
int tasks_here(const Environment& environment, const TaskVariables& names, int tasks) {
  const Reported<int> here = reported_count(environment, names.local_size);
  const Reported<int> nodes = reported_count(environment, names.nodes);
  if (here.known() && (here.value > 1 || !nodes.known())) return here.value;
  return nodes.known() ? (tasks + nodes.value - 1) / nodes.value : tasks;
}

ManagedJob job_of(const TaskVariables& names, const Environment& environment) {
  ManagedJob job;
  job.manager = names.manager;
  const Reported<int> tasks = reported_count(environment, names.size);
  job.tasks = tasks.value;
  job.tasks_here = tasks_here(environment, names, tasks.value);
  job.one_a_node = names.one_a_node;
  if (job.tasks_here == 1) {
    job.nodes = tasks;
    job.node_rank = reported_index(environment, names.rank);
  }
  const Reported<std::string> name = reported_text(environment, names.job);
  if (!name.known()) return job;
  job.run_name = name.value;
  job.port = {port_for(name.value), name.by};
  return job;
}

/// The file of jsrun begins with the node on which it was typed, which has no tasks.
void take_first_host(ManagedJob& job, const ManagerView& view) {
  const Reported<std::string> path = reported_text(view.environment, "LSB_DJOB_RANKFILE");
  if (!path.known()) return;
  const std::vector<std::string> hosts = hosts_in_lines(view.read(path.value));
  if (hosts.size() > 1) job.host = {hosts[1], path.by};
}

/// Of the starter that started this launcher; nullptr: none of them.
const TaskVariables* starter_of(const Environment& environment) {
  const auto tells = [&environment](const char* name) { return reported_text(environment, name).known(); };
  const auto found = std::find_if(kStarters.begin(), kStarters.end(), [&](const TaskVariables& names) {
    const bool of_slurm = tells("SLURM_STEP_ID") && !tells(names.local_size);
    return !of_slurm && tells(names.rank) && tells(names.size);
  });
  return found == kStarters.end() ? nullptr : &*found;
}

}  // namespace

std::optional<ManagedJob> mpi_job(const ManagerView& view) {
  const TaskVariables* const names = starter_of(view.environment);
  if (names == nullptr) return std::nullopt;
  ManagedJob job = job_of(*names, view.environment);
  if (job.manager == "jsrun") take_first_host(job, view);
  return job;
}

std::optional<bool> is_later_mpi_task(const Environment& environment) {
  const TaskVariables* const names = starter_of(environment);
  if (names == nullptr) return std::nullopt;
  const bool has_one_command = environment.get("OMPI_NUM_APP_CTX").value_or("1") == "1";  // unlike 'mpirun A : B'
  return has_one_command && environment.get(names->rank) != "0";
}

bool is_mpi_task_of_a_host(const Environment& environment) {
  const TaskVariables* const names = starter_of(environment);
  if (names == nullptr || names->manager == std::string_view("Flux")) return false;
  return job_of(*names, environment).tasks_here == 1;
}

}  // namespace lrun::launcher
