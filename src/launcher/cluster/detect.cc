// Joins what Slurm, other managers and this machine report into one Allocation. main() calls it once between reading
// the command line and planning.
#include "cluster/detect.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/user_error.h"
#include "cluster/host_lists.h"
#include "cluster/local_host.h"
#include "cluster/managed_job.h"
#include "cluster/mpi_job.h"
#include "cluster/outer_launcher.h"
#include "cluster/own_names.h"
#include "cluster/slurm.h"
#include "cluster/system_file.h"
#include "cluster/visible_gpus.h"
#include "process/pmi_proxy.h"

namespace lrun::launcher {
namespace {

/// The nodes of a step: this host, then the others. The others count as equal to this one until their launchers report.
Allocation of_step(const SlurmStep& step, AllocatedNode here) {
  Allocation allocation{{std::move(here)},
                        fmt::format("Slurm step {}.{}", step.job, step.step),
                        step.has_several_a_node() ? "SLURM_STEP_ID, SLURM_STEP_NODELIST, SLURM_PROCID, SLURM_LOCALID"
                                                  : "SLURM_STEP_ID, SLURM_STEP_NODELIST",
                        job_place_of(step)};
  for (int rank = 0; rank < static_cast<int>(step.hosts.size()); ++rank) {
    if (rank == step.node_rank) continue;
    AllocatedNode other = allocation.nodes.front();
    other.name = step.hosts[static_cast<std::size_t>(rank)];
    allocation.nodes.push_back(std::move(other));
  }
  return allocation;
}

std::string reason_of(const ManagedJob& job) {
  std::string reason;
  for (const std::string& by : {job.nodes.by, job.node_rank.by, job.host.by, job.port.by}) {
    const bool is_new = !by.empty() && reason.find(by) == std::string::npos;
    if (is_new) reason += (reason.empty() ? "" : ", ") + by;
  }
  return reason.empty() ? fmt::format("{} tasks", job.tasks) : reason;
}

/// This host, then the others, by name where the manager gives names.
std::vector<AllocatedNode> nodes_of(const ManagedJob& job, AllocatedNode here) {
  std::vector<AllocatedNode> nodes{std::move(here)};
  for (int rank = 0; rank < job.nodes.value; ++rank) {
    if (rank == job.node_rank.value) continue;
    AllocatedNode other = nodes.front();
    const auto place = static_cast<std::size_t>(rank);
    other.name = place < job.hosts.size() ? job.hosts[place] : std::string();
    nodes.push_back(std::move(other));
  }
  return nodes;
}

Allocation of_managed_job(const ManagedJob& job, AllocatedNode here) {
  JobPlace place{
      .run_name = job.run_name, .host = job.host.value, .port = job.port.value, .node_rank = job.node_rank.value};
  place.hosts = job.hosts;
  place.nodes_by = job.nodes.by;
  place.node_rank_by = job.node_rank.by;
  place.host_by = job.host.by;
  place.port_by = job.port.by;
  place.knows_nodes = job.nodes.known();
  place.replaces_nodes = job.replaces_nodes;
  place.shares_screen = job.numbers_tasks();
  place.tasks = job.tasks;
  place.tasks_here = job.tasks_here;
  place.starter = job.starter;
  place.divides_gpus = job.divides_gpus;
  place.task = job.task;
  return {nodes_of(job, std::move(here)), job.manager, reason_of(job), std::move(place)};
}

/// The manager shows each task one GPU: of as many as there are tasks on the node.
bool has_own_gpu(const Allocation& allocation, const Environment& environment) {
  const GpuInventory& gpus = allocation.nodes.front().gpus;
  const bool is_task = allocation.job && allocation.job->task && allocation.job->divides_gpus;
  return is_task && gpus.gpus.size() == 1 && environment.has(visibility_variable(gpus.vendor));
}

/// In a batch script of several nodes Slurm has started one program, on the first. In the shell of salloc on a login
/// node it has started none, and the job's nodes are idle also where it has one.
void look_for_batch_nodes(Allocation& allocation, const Environment& environment, const std::string& this_host) {
  const BatchNodes nodes = nodes_of_batch_script(environment, this_host);
  if (nodes.count > 1 || !nodes.has_this_host) allocation.nodes_to_start = nodes.count;
  allocation.is_outside = !nodes.has_this_host;
  if (allocation.nodes_to_start == 0) return;
  allocation.source = fmt::format("Slurm job {}", environment.get("SLURM_JOB_ID").value_or(""));
  const bool is_step = reported_text(environment, "SLURM_STEP_ID").known();
  allocation.reason = is_step ? "SLURM_JOB_ID, in the shell of salloc" : "SLURM_JOB_ID without SLURM_STEP_ID";
}

void look_for_listed_hosts(Allocation& allocation, const ManagerView& view) {
  std::optional<ListedHosts> list = find_listed_hosts(view);
  if (!list) return;
  allocation.source = std::move(list->manager);
  allocation.reason = std::move(list->by);
  allocation.listed_hosts = std::move(list->hosts);
}

/// Variables of another manager may have been passed on by srun from outside of the step, so they have to agree with
/// the step. Without a number of nodes they number something else than nodes, and nothing can be compared.
void check_agreement(const ManagedJob& job, const SlurmStep& step) {
  if (!job.nodes.known()) return;
  require_agreement("number of nodes", job.nodes, {static_cast<int>(step.hosts.size()), "SLURM_STEP_NODELIST"});
  require_agreement("node rank", job.node_rank, {step.node_rank, "SLURM_NODEID"});
}

/// The rendezvous is on node rank 0. mpirun starts launchers on hosts, so MASTER_ADDR cannot be a service or a
/// forwarded port that stands for that host. With -H it may start them on other hosts than the scheduler's first.
void refuse_foreign_master(const ManagedJob& job, const Questions& questions) {
  const int first = job.task ? job.task->rank : job.node_rank.value;
  const bool counts = job.numbers_tasks() && job.node_rank.known() && first == 0;
  const bool by_variable = job.host.by == "MASTER_ADDR";
  const bool is_asked = (by_variable || job.derives_host) && questions.names.empty();  // else the user names the host
  if (!counts || !is_asked || !is_of_another_host(job.host.value)) return;
  const std::string own = own_host_name();
  if (!by_variable) {
    throw UserError(
        fmt::format("{} begins with '{}', but {} has started node rank 0 on '{}', where the rendezvous has "
                    "to be",
                    job.host.by, job.host.value, job.manager, own),
        fmt::format("set 'MASTER_ADDR={}' for all tasks, or give each '--rdzv-endpoint {}:29500'", own, own));
  }
  throw UserError(fmt::format("'MASTER_ADDR={}' is another host than '{}', where {} has started node rank 0 and the "
                              "rendezvous has to be",
                              job.host.value, own, job.manager),
                  fmt::format("set 'MASTER_ADDR={}', or name '{}' first in the list of hosts", own, job.host.value));
}

Allocation find_allocation(const Questions& questions, const Environment& environment) {
  const ManagerView view{environment, own_host_name(), read_text, pmi_proxy(environment.get("PMI_FD").value_or(""))};
  const std::optional<ManagedJob> job = questions.other_managers ? find_managed_job(view) : std::nullopt;
  const bool of_several = job && !job->is_of_one();
  // A step of one lrun per node may run mpirun, whose own count of tasks is then the one that matters.
  const bool in_step = questions.manager && !(of_several && job->numbers_tasks());
  const std::optional<SlurmStep> step = in_step ? slurm_step(environment) : std::nullopt;
  if (step && of_several) check_agreement(*job, *step);
  if (of_several) refuse_foreign_master(*job, questions);
  AllocatedNode here = local_host(questions, environment);
  if (step) return of_step(*step, std::move(here));
  if (of_several) return of_managed_job(*job, std::move(here));
  Allocation allocation{{std::move(here)}, "this host", "no manager names other nodes"};
  if (job) {
    allocation.reason = fmt::format("{} names no other node", job->nodes.by);
    return allocation;
  }
  if (questions.manager) look_for_batch_nodes(allocation, environment, view.this_host);
  if (questions.other_managers && allocation.nodes_to_start == 0) look_for_listed_hosts(allocation, view);
  return allocation;
}

}  // namespace

Allocation detect_allocation(const Questions& questions, const Environment& environment) {
  Allocation allocation = find_allocation(questions, environment);
  allocation.tasks_of_step = tasks_of_step(environment);
  if (questions.manager) {
    const SlurmShare share = share_of_node(environment);
    allocation.gpus_given = share.gpus;
    allocation.cpus_given = share.cpus;
  }
  if (has_own_gpu(allocation, environment)) allocation.gpus_given = allocation.job->task->ranks_here;
  return allocation;
}

bool is_later_task(const Environment& environment) {
  if (is_worker(environment)) return false;
  if (const std::optional<bool> is_later = is_later_mpi_task(environment)) return *is_later;
  const bool has_one_command = !environment.has("SLURM_HET_SIZE");  // else each component has its own
  return has_one_command && tasks_of_step(environment) > 1 && environment.get("SLURM_PROCID") != "0";
}

}  // namespace lrun::launcher
