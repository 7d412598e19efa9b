// Reads the variables of Open MPI, MPICH, jsrun and Flux: how many tasks there are, and the place of this one. Called
// by the search for a manager and, for errors that all tasks find, by main().
#include "cluster/mpi_job.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cluster/host_lists.h"
#include "cluster/slurm_lists.h"

namespace lrun::launcher {
namespace {

/// The variables that a starter of tasks sets.
struct TaskVariables {
  const char* manager;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;     ///< empty: there is no such variable
  const char* nodes;          ///< empty: there is no such variable
  const char* job;            ///< equal for all tasks; empty: there is no such variable
  const char* starter;        ///< as ManagedJob::starter
  bool divides_gpus = false;  ///< as ManagedJob::divides_gpus
};

// Flux sets PMI_RANK too, so it stands before MPICH. Slurm's PMI does not count the tasks of a host; mpi_job() leaves
// Slurm's tasks to the reader of steps.
constexpr std::array kStarters{
    TaskVariables{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                  "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_MCA_orte_num_nodes", "PMIX_NAMESPACE",
                  "mpirun --map-by ppr:{}:node"},
    TaskVariables{"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK",
                  "JSM_NAMESPACE_LOCAL_SIZE", "", "LSB_JOBID", "jsrun --rs_per_host 1 --tasks_per_rs {}", true},
    TaskVariables{"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", "", "FLUX_JOB_NNODES", "FLUX_JOB_ID",
                  "flux run --tasks-per-node={}", true},
    TaskVariables{"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "", "", "mpiexec -ppn {}"}};

/// The tasks on this host. Where only nodes are counted: those of the fullest node at least. Where nothing is: all.
int tasks_here(const Environment& environment, const TaskVariables& names, int tasks) {
  const Reported<int> here = reported_count(environment, names.local_size);
  const Reported<int> nodes = reported_count(environment, names.nodes);
  if (here.known() && (here.value > 1 || !nodes.known())) return here.value;
  return nodes.known() ? (tasks + nodes.value - 1) / nodes.value : tasks;
}

/// The node follows from the ranks where each host has as many, in order. Where it is otherwise a task that sees it
/// refuses and so ends all; launchers that count different nodes do not join each other.
std::optional<TaskPlace> task_place(const TaskVariables& names, const Environment& environment, int tasks, int here) {
  const int rank = reported_index(environment, names.rank).value;
  const Reported<int> local_rank = reported_index(environment, names.local_rank);
  const Reported<int> local_size = reported_count(environment, names.local_size);
  const bool is_counted = !local_size.known() || local_size.value == here;
  const bool is_in_order = rank < tasks && tasks % here == 0 && local_rank.known() && rank % here == local_rank.value;
  if (here == 1 || !is_counted || !is_in_order) return std::nullopt;
  const int nodes = tasks / here;
  return TaskPlace{.rank = rank,
                   .ranks = tasks,
                   .local_rank = local_rank.value,
                   .ranks_here = here,
                   .node_rank = rank / here,
                   .nodes = nodes,
                   .ranks_by_node = std::vector<int>(static_cast<std::size_t>(nodes), here),
                   .starter = names.starter};
}

void take_task(ManagedJob& job, TaskPlace task, const TaskVariables& names) {
  job.nodes = {task.nodes, *names.local_size == '\0' ? names.nodes : names.local_size};
  job.node_rank = {task.node_rank, names.rank};
  if (task.nodes == 1) job.host = {"127.0.0.1", job.nodes.by};
  job.derives_host = true;
  job.task = std::move(task);
}

ManagedJob job_of(const TaskVariables& names, const Environment& environment) {
  ManagedJob job;
  job.manager = names.manager;
  const Reported<int> tasks = reported_count(environment, names.size);
  job.tasks = tasks.value;
  job.tasks_here = tasks_here(environment, names, tasks.value);
  job.starter = names.starter;
  job.divides_gpus = names.divides_gpus;
  if (job.tasks_here == 1) {
    job.nodes = tasks;
    job.node_rank = reported_index(environment, names.rank);
  }
  if (auto task = task_place(names, environment, job.tasks, job.tasks_here)) take_task(job, std::move(*task), names);
  const Reported<std::string> name = reported_text(environment, names.job);
  if (!name.known()) return job;
  job.run_name = name.value;
  job.port = {port_for(name.value), name.by};
  return job;
}

/// The file of jsrun begins with the node on which it was typed, which has no tasks.
Reported<std::string> first_host_of_jsrun(const ManagerView& view) {
  const Reported<std::string> path = reported_text(view.environment, "LSB_DJOB_RANKFILE");
  if (!path.known()) return {};
  const std::vector<std::string> hosts = hosts_in_lines(view.read(path.value));
  return hosts.size() > 1 ? Reported<std::string>{hosts[1], path.by} : Reported<std::string>();
}

/// The first host that the scheduler gave to the job in which mpirun runs. Rank 0 is there unless the user's words
/// place it elsewhere, which detect_allocation() notices on the host of rank 0.
Reported<std::string> first_host_of_scheduler(const ManagerView& view) {
  if (const auto list = find_listed_hosts(view)) return {list->hosts.front(), list->by};
  const Reported<std::string> nodes = reported_text(view.environment, "SLURM_JOB_NODELIST");
  const auto hosts = parse_slurm_hosts(nodes.value);
  return hosts && hosts->size() > 1 ? Reported<std::string>{hosts->front(), nodes.by} : Reported<std::string>();
}

void take_first_host(ManagedJob& job, const ManagerView& view) {
  if (job.manager == "jsrun") {
    job.host = first_host_of_jsrun(view);
  } else if (job.manager != "Flux" && job.nodes.known()) {
    job.host = first_host_of_scheduler(view);
    job.derives_host = true;
  }
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
  if (!job.has_all_ranks_here()) take_first_host(job, view);
  if (job.has_all_ranks_here() && job.run_name.empty() && view.pmi_proxy) {
    job.run_name = "hydra-" + std::to_string(*view.pmi_proxy);  // MPICH gives the job no name
    job.port = {port_for(job.run_name), "PMI_FD"};
  }
  return job;
}

std::optional<bool> is_later_mpi_task(const Environment& environment) {
  const TaskVariables* const names = starter_of(environment);
  if (names == nullptr) return std::nullopt;
  const bool has_one_command = environment.get("OMPI_NUM_APP_CTX").value_or("1") == "1";  // unlike 'mpirun A : B'
  return has_one_command && environment.get(names->rank) != "0";
}

std::string_view variable_of_mpi_tasks(const Environment& environment) {
  const TaskVariables* const names = starter_of(environment);
  return names == nullptr ? std::string_view() : names->local_rank;
}

bool is_first_mpi_task_of_host(const Environment& environment) {
  const TaskVariables* const names = starter_of(environment);
  if (names == nullptr || names->manager == std::string_view("Flux")) return false;
  return environment.get(names->local_rank).value_or("0") == "0";
}

}  // namespace lrun::launcher
