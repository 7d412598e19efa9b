// The place of this launcher in a job that a cluster's manager knows. A LaunchRequest and an Allocation come in, the
// request with number of nodes, node rank and endpoint goes out. main() calls placed() before make_plan().
#include "plan/job_place.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest.h"
#include "base/numeric_address.h"
#include "base/user_error.h"
#include "cluster/user_hosts.h"
#include "plan/rendezvous_request.h"
#include "plan/task_place.h"

namespace lrun::launcher {
namespace {

bool names_endpoint(const LaunchRequest& request) {
  return request.rendezvous.endpoint.given() || request.rendezvous.master_addr.given();
}

/// The user gives all that launchers need to meet. They can give out the ranks themselves.
bool is_by_hand(const LaunchRequest& request) { return names_endpoint(request) && request.num_nodes.given(); }

const std::string& host_named(const LaunchRequest& request) {
  const RendezvousRequest& rendezvous = request.rendezvous;
  return rendezvous.endpoint.given() ? rendezvous.endpoint.value.host : rendezvous.master_addr.value;
}

/// The endpoint is one at which only launchers of the same host can meet.
bool names_own_host(const LaunchRequest& request) {
  return names_endpoint(request) && !loopback_address_of(host_named(request)).empty();
}

const std::string& or_source(const std::string& by, const Allocation& allocation) {
  return by.empty() ? allocation.source : by;
}

/// \param said  'RANK says node rank 1'
[[noreturn]] void refuse_contradiction(const std::string& origin, const std::string& value, const std::string& said) {
  const bool is_variable = origin.find(':') == std::string::npos;  // else 'lrun.toml:3: num_nodes'
  throw UserError(fmt::format("'{}{}{}', and {}", origin, is_variable ? "=" : " ", value, said),
                  "remove one of them; '--num-nodes', '--node-rank' and '--rdzv-endpoint' override both");
}

/// Each of several launchers on a host would start all workers of the host, where it does not know its place.
void refuse_several_tasks(const Allocation& allocation, const LaunchRequest& request) {
  const JobPlace& job = *allocation.job;
  if (job.tasks_here <= 1 || job.task) return;
  const std::string devices = request.devices.given() ? text_of(request.devices.value) : text_of(job.tasks_here);
  const bool one_host = job.tasks == job.tasks_here;
  const UserError error(
      fmt::format("{} starts {} tasks on this host, and lrun cannot tell their nodes: each host needs as many tasks, "
                  "numbered host by host",
                  allocation.source, job.tasks_here),
      fmt::format("write '{}', or give '--standalone' to every lrun that should run by itself",
                  starter_line(job.starter, one_host ? 1 : 2, 1, "--devices " + devices)));
  if (one_host) throw ErrorOfAllTasks(error);
  throw error;
}

/// The user names the endpoint and the number of nodes, and srun starts more launchers than that. Most often these are
/// the tasks of a job that was sized for a task per rank.
void refuse_more_launchers(const Allocation& allocation, const LaunchRequest& request) {
  const int nodes = request.num_nodes.value;
  const bool by_hand = request.compat == Compat::kLrun && !request.standalone && names_endpoint(request) && nodes > 1;
  if (!by_hand || allocation.tasks_of_step <= nodes) return;
  throw UserError(fmt::format("'{} {}', but srun starts {} tasks, each of which is an lrun for one node",
                              request.num_nodes.origin, nodes, allocation.tasks_of_step),
                  fmt::format("write '{}'", srun_line(nodes, 1)));
}

/// Slurm gave several GPUs to the job, and without an option lrun would use one of them.
void refuse_idle_gpus(const Allocation& allocation, const LaunchRequest& request) {
  const bool says =
      request.devices.given() || request.nproc_per_node.given() || request.accelerator.value == DeviceKind::kCpu;
  const bool of_rank = allocation.job && allocation.job->task;
  const bool sees = allocation.nodes.front().gpus.gpus.size() > 1;  // a job on CPUs may have a whole node
  if (says || of_rank || request.standalone || !sees || allocation.gpus_given <= 1) return;
  throw UserError(
      fmt::format("this job has {} GPUs per node, but without '--devices' lrun uses only one", allocation.gpus_given),
      "write 'lrun --devices auto …' for all of them, or '--devices 1'");
}

/// A job of several hosts would use only this one.
void refuse_idle_hosts(const Allocation& allocation, const LaunchRequest& request) {
  const std::vector<std::string>& hosts = allocation.listed_hosts;
  const bool alone = request.num_nodes.given() && request.num_nodes.value == 1;
  if (hosts.empty() || alone || is_by_hand(request)) return;
  // PBS lists hosts as --hostfile reads them, and allows ssh inside of a job.
  const std::string line =
      allocation.reason == "PBS_NODEFILE"
          ? "lrun --hostfile $PBS_NODEFILE …"
          : fmt::format("mpirun --map-by ppr:1:node lrun --rdzv-endpoint {}:29500 …", hosts.front());
  throw UserError(fmt::format("{} gives this job {} hosts ('{}' is the first) and starts lrun only on this one",
                              allocation.source, hosts.size(), hosts.front()),
                  fmt::format("write '{}', or '--num-nodes 1' for only this host", line));
}

void refuse_missing_endpoint(const Allocation& allocation, const LaunchRequest& request) {
  const JobPlace& job = *allocation.job;
  if (!job.host.empty() || names_endpoint(request) || request.dry_run != DryRun::kNo) return;
  const std::string host = job.node_rank == 0 ? allocation.nodes.front().name : "HOST";
  const std::string which = job.node_rank == 0 ? "this is node rank 0" : "HOST is that of node rank 0";
  throw UserError(fmt::format("{} gives {} launchers their ranks, but no rendezvous endpoint", allocation.source,
                              job.task ? job.task->ranks : request.num_nodes.value),
                  fmt::format("give each '--rdzv-endpoint {}:29500', or MASTER_ADDR={}; {}", host, host, which));
}

int nodes_of(const Allocation& allocation) {
  return std::max(allocation.nodes_to_start, static_cast<int>(allocation.nodes.size()));
}

/// 'Slurm job 12 has 3 nodes'
std::string has_nodes(const LaunchRequest& request, const Allocation& allocation) {
  const std::string text = fmt::format("{} has {}", allocation.source, counted(nodes_of(allocation), "node"));
  return request.spares.value == 0 ? text : fmt::format("{}, {} of them spares", text, request.spares.value);
}

/// Spares are nodes of a job that a manager counts, and at least one node has to work.
void check_spares(const LaunchRequest& request, const Allocation& allocation, bool takes_part) {
  const Setting<int>& spares = request.spares;
  if (!spares.given()) return;
  const std::string asked = fmt::format("'{}'", as_written(spares));
  const int nodes = nodes_of(allocation);
  if (takes_part && allocation.job->task && nodes > 1) {
    throw UserError(fmt::format("{}: {} starts one launcher per rank", asked, allocation.source),
                    fmt::format("write '{}'", starter_line(allocation.job->starter, allocation.job->task->nodes, 1,
                                                           fmt::format("--spares {}", spares.value))));
  }
  const bool has_task = allocation.job && allocation.job->task;
  if (has_task || (allocation.nodes_to_start == 0 && !(takes_part && allocation.job->knows_nodes))) {
    throw UserError(
        fmt::format("{}: spares need a job of several nodes", asked),
        "ask Slurm for more nodes; where you start lrun on each node yourself, extra nodes beyond '--num-nodes' "
        "become spares");
  }
  if (spares.value < nodes) return;
  throw UserError(fmt::format("{}: {} has {} nodes, and at least one has to work", asked, allocation.source, nodes),
                  fmt::format("write '--spares {}'", nodes - 1));
}

/// The number of nodes is that of the manager. The user may ask for fewer where lrun has yet to start the launchers.
void take_nodes(LaunchRequest& request, const Allocation& allocation) {
  const int nodes = nodes_of(allocation) - request.spares.value;
  const Setting<int>& asked = request.num_nodes;
  const int least = request.min_nodes == 0 ? asked.value : request.min_nodes;
  const bool fewer = asked.given() && asked.value < nodes;
  const std::string& by = allocation.job ? allocation.job->nodes_by : std::string();
  if (asked.given() && (least > nodes || (fewer && allocation.job))) {
    const bool is_flag = asked.source == Source::kFlag;
    if (!is_flag && !by.empty()) {
      refuse_contradiction(asked.origin, std::to_string(asked.value), fmt::format("{} gives {} nodes", by, nodes));
    }
    const bool by_srun = allocation.job && by.empty();
    throw UserError(fmt::format("'{}': {}", as_written(asked), has_nodes(request, allocation)),
                    by_srun ? fmt::format("leave '{}' out, or write '{}'", asked.origin, srun_line(asked.value, 1))
                            : fmt::format("leave '{}' out", asked.origin));
  }
  if (!fewer) request.num_nodes = {nodes, Source::kScheduler, or_source(by, allocation)};
}

/// All launchers that lrun is about to start would inherit the node rank.
void refuse_rank_of_many(const LaunchRequest& request, const Allocation& allocation) {
  const Setting<int>& rank = request.rendezvous.node_rank;
  if (!rank.given() || nodes_to_start(request, allocation) <= 1) return;
  refuse_contradiction(
      rank.origin, std::to_string(rank.value),
      fmt::format("lrun starts a launcher on each of {} nodes of {}", request.num_nodes.value, allocation.source));
}

/// A manager that does not know the number of nodes may have started only some of them, such as the workers beside a
/// master. A user who also says where node rank 0 is may then number all nodes.
bool may_number_nodes(const LaunchRequest& request, const JobPlace& job) {
  const bool says_where = names_endpoint(request) || job.host_by == "MASTER_ADDR";
  const Setting<int>& rank = request.rendezvous.node_rank;
  return rank.source == Source::kFlag || (!job.knows_nodes && says_where && rank.value > job.node_rank);
}

void take_node_rank(LaunchRequest& request, const Allocation& allocation) {
  const JobPlace& job = *allocation.job;
  Setting<int>& rank = request.rendezvous.node_rank;
  if (!rank.given()) {
    rank = {job.node_rank, Source::kScheduler, or_source(job.node_rank_by, allocation)};
  } else if (rank.value != job.node_rank && !may_number_nodes(request, job)) {
    refuse_contradiction(rank.origin, std::to_string(rank.value),
                         fmt::format("node rank is {} by {}", job.node_rank, or_source(job.node_rank_by, allocation)));
  }
}

/// Slurm reports the host of node rank 0, where the rendezvous has to be, except with c10d.
void refuse_other_endpoint(const LaunchRequest& request, const Allocation& allocation) {
  const RendezvousRequest& rendezvous = request.rendezvous;
  const JobPlace& job = *allocation.job;
  const bool by_slurm = job.knows_nodes && job.nodes_by.empty() && rendezvous.node_rank.source == Source::kScheduler;
  if (!by_slurm) return;
  const std::string& host = host_named(request);
  const std::string& origin = rendezvous.endpoint.given() ? rendezvous.endpoint.origin : rendezvous.master_addr.origin;
  if (names_own_host(request) && allocation.nodes.size() > 1) {
    throw UserError(
        fmt::format("'{}' names '{}', which means each of {} nodes itself", origin, host, allocation.nodes.size()),
        fmt::format("leave '{}' out, or write '--standalone' for a separate run on each node", origin));
  }
  if (rendezvous.backend.value != RendezvousBackend::kStatic) return;
  const std::string name = host.substr(0, host.find('.'));
  const auto is_named = [&](const AllocatedNode& node) { return node.name == name; };
  if (name == job.host || std::none_of(allocation.nodes.begin(), allocation.nodes.end(), is_named)) return;
  throw UserError(
      fmt::format("'{}' names '{}', but the rendezvous is on node rank 0, which is '{}'", origin, host, job.host),
      fmt::format("name '{}', or leave '{}' out", job.host, origin));
}

void take_endpoint(LaunchRequest& request, const Allocation& allocation) {
  const JobPlace& job = *allocation.job;
  RendezvousRequest& rendezvous = request.rendezvous;
  const Setting<std::string>& master = rendezvous.master_addr;
  if (master.given() && master.source != Source::kFlag && job.host_by == "MASTER_ADDR" && master.value != job.host) {
    refuse_contradiction(master.origin, master.value, fmt::format("'MASTER_ADDR={}'", job.host));
  }
  // Where the user numbers the nodes, the other ones may be of other jobs, and their name is not this job's.
  const bool is_whole_run = job.knows_nodes || rendezvous.node_rank.source == Source::kScheduler;
  if (request.rdzv_id.empty() && is_whole_run) request.rdzv_id = job.run_name;
  rendezvous.manager_replaces_nodes = job.replaces_nodes;
  rendezvous.shares_screen = job.shares_screen;
  if (rendezvous.node_rank.source == Source::kScheduler) rendezvous.hosts = job.hosts;
  if (names_endpoint(request)) return refuse_other_endpoint(request, allocation);
  if (job.host.empty()) return;
  const std::string& origin = or_source(job.host_by, allocation);
  rendezvous.backend = {RendezvousBackend::kStatic, Source::kScheduler, origin};
  const bool listens = job.listener >= 0;
  const int port = listens ? job.port : request.master_port.value.value_or(job.port > 0 ? job.port : kPortOfStatic);
  rendezvous.endpoint = {{job.host, port}, Source::kScheduler, origin};
  rendezvous.listener = job.listener;
  rendezvous.is_up = job.is_up;
}

/// One launcher per rank: their number is fixed, and none can be missing.
void take_task(LaunchRequest& request, const Allocation& allocation) {
  const TaskPlace& task = *allocation.job->task;
  if (request.min_nodes != 0) {
    throw UserError(fmt::format("'{}': {} starts one launcher per rank, so that their number is fixed",
                                request.num_nodes.origin, allocation.source),
                    fmt::format("write '{}' for nodes that come and go",
                                starter_line(task.starter, task.nodes, 1, request.num_nodes.origin + " MIN:MAX")));
  }
  request.rendezvous.task = task;
}

/// The request is a part of the manager's job.
bool takes_part(const LaunchRequest& request, const Allocation& allocation) {
  if (!allocation.job) return false;
  const JobPlace& job = *allocation.job;
  if (!job.knows_nodes && job.tasks_here == 1) return request.num_nodes.value > 1;
  if (!is_by_hand(request)) return true;
  // Several launchers on a host that are to be nodes of it are the user's.
  const bool has_nodes = job.tasks_here == 1 || allocation.nodes.size() > 1;
  return has_nodes && static_cast<int>(allocation.nodes.size()) == request.num_nodes.value;
}

}  // namespace

bool leaves_nodes_to_manager(const LaunchRequest& request) {
  const bool rank_said = request.rendezvous.node_rank.source == Source::kFlag;  // a variable may contradict Slurm's
  return request.compat == Compat::kLrun && !request.standalone && !is_by_hand(request) && !rank_said;
}

bool leaves_anything_to_manager(const LaunchRequest& request) {
  const bool ranks_by_arrival =
      request.rendezvous.backend.given() && request.rendezvous.backend.value == RendezvousBackend::kC10d;
  const bool rank_said = request.rendezvous.node_rank.source == Source::kFlag;  // as above
  const bool all_said = is_by_hand(request) && (rank_said || ranks_by_arrival);
  return request.compat == Compat::kLrun && !request.standalone && !all_said;
}

namespace {

/// The number of workers on a node follows from nothing that the user says, nor from GPUs. mpirun in a batch script has
/// started the tasks that the user wants.
bool leaves_workers_to_manager(const LaunchRequest& request, const Allocation& allocation) {
  const bool has_tasks = allocation.job && !allocation.job->starter.empty();
  const bool says = request.devices.given() || request.nproc_per_node.given() || request.standalone || has_tasks;
  const std::vector<Gpu>& gpus = allocation.nodes.front().gpus.gpus;
  const bool on_cpus =
      request.accelerator.value.value_or(gpus.empty() ? DeviceKind::kCpu : DeviceKind::kGpu) == DeviceKind::kCpu;
  return !says && on_cpus && request.strategy.value != Strategy::kTpu && request.compat == Compat::kLrun;
}

}  // namespace

LaunchRequest with_tasks_asked(LaunchRequest request, const Allocation& allocation, int tasks) {
  if (tasks <= 1 || !leaves_workers_to_manager(request, allocation)) return request;
  request.nproc_per_node = {{DeviceRequest::Kind::kProcesses, tasks}, Source::kScheduler, "SLURM_NTASKS_PER_NODE"};
  if (tasks > kMostSlots) {
    throw UserError("'" + as_written(request.nproc_per_node) + "' is more than one node can have",
                    fmt::format("at most {} workers on a node", kMostSlots));
  }
  return request;
}

std::string note_of_unused_tasks(const LaunchRequest& request, const Allocation& allocation, int tasks) {
  const int nodes = nodes_of(allocation);
  if (tasks <= nodes || !leaves_workers_to_manager(request, allocation)) return {};
  const std::string a_node =
      tasks % nodes == 0 ? fmt::format(", or submit with '--ntasks-per-node={}'", tasks / nodes) : std::string();
  return fmt::format(
      "this job has {} tasks, and lrun starts one worker on {}; for a worker a task write 'srun lrun …'{}", tasks,
      nodes == 1 ? "its node" : fmt::format("each of {} nodes", nodes), a_node);
}

int nodes_to_start(const LaunchRequest& request, const Allocation& allocation) {
  const int nodes = request.num_nodes.value + request.spares.value;
  return allocation.nodes_to_start > 0 && (nodes > 1 || allocation.is_outside) ? nodes : 0;
}

namespace {

/// Takes all that follows from the words of the user and of the manager, and from nothing of this host.
void take_size(LaunchRequest& request, const Allocation& allocation, bool takes_part_in_job) {
  refuse_more_launchers(allocation, request);
  check_spares(request, allocation, takes_part_in_job);
  if (allocation.nodes_to_start > 0 && !names_own_host(request)) take_nodes(request, allocation);
  refuse_rank_of_many(request, allocation);
  if (!takes_part_in_job) return;
  if (allocation.job->task) take_task(request, allocation);
  if (allocation.job->knows_nodes) take_nodes(request, allocation);
}

/// Does what goes wrong in all tasks or in none, or mostly so. \throws ErrorOfAllTasks  where there are tasks
template <class Step>
void do_in_all_tasks(const Allocation& allocation, const Step& step, bool may_be_of_host = false) {
  try {
    step();
  } catch (const UserError& error) {
    if (!allocation.job) throw;
    throw ErrorOfAllTasks(error, may_be_of_host);
  }
}

}  // namespace

LaunchRequest placed(LaunchRequest request, const Allocation& allocation) {
  refuse_idle_hosts(allocation, request);
  refuse_idle_gpus(allocation, request);
  const bool takes_part_in_job = takes_part(request, allocation);
  if (takes_part_in_job) refuse_several_tasks(allocation, request);
  do_in_all_tasks(allocation, [&] { take_size(request, allocation, takes_part_in_job); });
  if (!takes_part_in_job) return request;
  do_in_all_tasks(
      allocation, [&] { refuse_missing_endpoint(allocation, request); }, true);
  take_node_rank(request, allocation);  // one rank for all may be right in the first task
  do_in_all_tasks(allocation, [&] { take_endpoint(request, allocation); });
  return request;
}

namespace {

std::string describe_ranks(const LaunchRequest& request, const Allocation& allocation) {
  const RendezvousRequest& rendezvous = request.rendezvous;
  if (!rendezvous.task) {
    return fmt::format("{}: {} nodes ({}), this is node rank {} ({})", allocation.source, request.num_nodes.value,
                       request.num_nodes.origin, rendezvous.node_rank.value, rendezvous.node_rank.origin);
  }
  const TaskPlace& task = *rendezvous.task;
  return fmt::format("{}: one launcher per rank, {} on {}; this one has rank {} (local rank {} of {} on node rank {})",
                     allocation.source, task.ranks, task.nodes == 1 ? "one node" : fmt::format("{} nodes", task.nodes),
                     task.rank, task.local_rank, task.ranks_here, task.node_rank);
}

}  // namespace

std::string describe_place(const LaunchRequest& request, const Allocation& allocation) {
  const RendezvousRequest& rendezvous = request.rendezvous;
  if (!allocation.job || !rendezvous.node_rank.given()) return {};
  std::string text = describe_ranks(request, allocation);
  const Endpoint& place = rendezvous.endpoint.value;
  if (place.host.empty()) return text;
  text +=
      fmt::format("; rendezvous at {}, port {} ({}", place.host, place.port.value_or(0), rendezvous.endpoint.origin);
  const std::string& port_by = allocation.job->port_by;
  if (rendezvous.endpoint.source == Source::kScheduler && !port_by.empty() && port_by != rendezvous.endpoint.origin) {
    text += ", " + port_by;
  }
  return text + ")";
}

}  // namespace lrun::launcher
