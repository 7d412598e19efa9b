// A run in which a manager starts a launcher for each rank. A LaunchRequest with its TaskPlace comes in; the devices of
// the rank's node go out, and later the plan for this one rank. run_nodes and make_plan() call it.
#include "plan/task_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/nearest.h"
#include "base/user_error.h"

namespace lrun::launcher {
namespace {

std::string launchers_here(const TaskPlace& task) {
  return task.ranks_here == 1 ? std::string("one launcher of one rank")
                              : fmt::format("{} launchers of one rank each", task.ranks_here);
}

/// 'mpirun' of 'mpirun --map-by ppr:{}:node', 'flux run'.
std::string name_of_starter(const std::string& starter) { return starter.substr(0, starter.find(" -")); }

std::string line_for(const TaskPlace& task, std::size_t tasks_a_node, const std::string& options = {}) {
  return starter_line(task.starter, task.nodes, tasks_a_node, options);
}

UserError wrong_count(const TaskPlace& task, const Setting<DeviceRequest>& asked, const std::string& wants) {
  return UserError(
      fmt::format("'{}'{}, and this node has {}", as_written(asked), wants, launchers_here(task)),
      fmt::format(
          "leave it out, or write '{}'{}", line_for(task, 1, asked.origin + " " + text_of(asked.value)),
          task.nodes == 1 && !task.starter.empty() ? fmt::format(" without '{}'", name_of_starter(task.starter)) : ""));
}

[[noreturn]] void refuse_count(const TaskPlace& task, const Setting<DeviceRequest>& asked, const std::string& wants) {
  throw wrong_count(task, asked, wants);
}

/// An error that follows from the number of launchers here: each of them finds it where every node has as many.
[[noreturn]] void refuse_number(const TaskPlace& task, const UserError& error) {
  const std::vector<int>& ranks = task.ranks_by_node;
  const bool is_everywhere = std::all_of(ranks.begin(), ranks.end(), [&](int n) { return n == task.ranks_here; });
  if (is_everywhere) throw ErrorOfAllTasks(error);
  throw error;
}

/// Each launcher has one process, and torchrun's ways to count more make no sense.
void check_processes(const LaunchRequest& request) {
  const DeviceRequest& processes = request.nproc_per_node.value;
  if (processes.given() && processes.number() != 1) {
    const TaskPlace& task = *request.rendezvous.task;
    throw ErrorOfAllTasks(wrong_count(task, request.nproc_per_node, " counts the workers of one launcher"));
  }
}

/// Each worker's variables name the chips and ports of all workers of its node. A launcher of one worker does not know
/// them.
void refuse_tpus(const LaunchRequest& request) {
  if (request.accelerator.value != DeviceKind::kTpu) return;
  const TaskPlace& task = *request.rendezvous.task;
  throw UserError(fmt::format("strategy 'tpu' starts all workers of a node from one launcher, and this node has {}",
                              launchers_here(task)),
                  fmt::format("write '{}'", line_for(task, 1, fmt::format("--devices {}", task.ranks_here))));
}

std::size_t usable_gpus(const LaunchRequest& request, const AllocatedNode& node) {
  if (request.accelerator.value == DeviceKind::kCpu) return 0;
  return static_cast<std::size_t>(std::count_if(node.gpus.gpus.begin(), node.gpus.gpus.end(), is_usable));
}

/// The job was given more GPUs than there are launchers, and the user did not mention them.
void refuse_idle_task_gpus(const TaskPlace& task, std::size_t gpus, std::size_t ranks) {
  const std::string devices = fmt::format("--devices {}", ranks);
  throw UserError(fmt::format("{} of this node would be idle: {} were given to {}", counted(gpus - ranks, "GPU"), gpus,
                              launchers_here(task)),
                  fmt::format("write '{}' for one rank per GPU, or 'lrun {} …'", line_for(task, gpus), devices));
}

void refuse_missing_gpus(const TaskPlace& task, std::size_t gpus) {
  throw UserError(fmt::format("this node has {}, and {}", counted(gpus, "GPU"), launchers_here(task)),
                  fmt::format("write '{}', or 'lrun --accelerator cpu …' for ranks on CPUs", line_for(task, gpus)));
}

/// The count with the origin of the user's own setting, if there is one.
Setting<DeviceRequest> counted_by_launchers(const Setting<DeviceRequest>& written, int count) {
  const DeviceRequest request{DeviceRequest::Kind::kCount, count};
  if (written.given()) return {request, written.source, written.origin};
  return {request, Source::kScheduler, "--devices"};
}

/// The devices of the whole node. The user's count may also mean the one device of each launcher.
Setting<DeviceRequest> devices_of_node(const LaunchRequest& request, std::size_t gpus, int gpus_given) {
  const TaskPlace& task = *request.rendezvous.task;
  const auto ranks = static_cast<std::size_t>(task.ranks_here);
  const DeviceRequest& asked = request.devices.value;
  const bool on_cpus = gpus == 0 && asked.kind == DeviceRequest::Kind::kAuto;
  if (asked.given() && asked.number() != 1 && !on_cpus) return request.devices;
  if (gpus > 0 && gpus < ranks) refuse_missing_gpus(task, gpus);
  if (!request.devices.given() && gpus_given > 0 && gpus > ranks) refuse_idle_task_gpus(task, gpus, ranks);
  return counted_by_launchers(request.devices, task.ranks_here);
}

/// With --gpus-per-task and --gpu-bind Slurm shows each launcher only its own GPU, and so does jsrun.
DeviceChoice choose_own(LaunchRequest request, const AllocatedNode& node, std::size_t gpus) {
  const TaskPlace& task = *request.rendezvous.task;
  const Setting<DeviceRequest> written = request.devices;
  if (gpus > 1 && !request.devices.given()) {
    throw UserError(fmt::format("each launcher of one rank is given {} and uses one", counted(gpus, "GPU")),
                    task.starter.empty()
                        ? "write 'srun --gpus-per-task=1 lrun …' with as many tasks, or 'lrun --devices 1 …'"
                        : "show each launcher one GPU, or write 'lrun --devices 1 …'");
  }
  const auto count = written.value.number();
  if (count && *count != 1 && *count != task.ranks_here) refuse_count(task, written, "");
  if (written.value.kind != DeviceRequest::Kind::kList) request.devices = counted_by_launchers(written, 1);
  DeviceChoice choice = choose_devices(request, node);
  if (choice.devices.size() != 1) refuse_count(task, written, "");
  choice.asked = written;
  choice.devices.resize(static_cast<std::size_t>(task.ranks_here), choice.devices.front());
  choice.is_own = true;
  return choice;
}

}  // namespace

std::string srun_line(int nodes, std::size_t tasks_a_node, const std::string& options) {
  return fmt::format("srun --nodes={} --ntasks={} --ntasks-per-node={} lrun {}…", nodes,
                     static_cast<std::size_t>(nodes) * tasks_a_node, tasks_a_node,
                     options.empty() ? "" : options + " ");
}

std::string starter_line(const std::string& starter, int nodes, std::size_t tasks_a_node, const std::string& options) {
  if (starter.empty()) return srun_line(nodes, tasks_a_node, options);
  std::string start = starter;
  if (nodes == 1) {
    start = tasks_a_node == 1 ? "" : name_of_starter(starter) + " -n {}";
  }
  if (const auto number = start.find("{}"); number != std::string::npos) {
    start.replace(number, 2, std::to_string(tasks_a_node)).append(" ");
  }
  return fmt::format("{}lrun {}…", start, options.empty() ? "" : options + " ");
}

DeviceChoice choose_for_task(const LaunchRequest& request, const AllocatedNode& node, int gpus_given) {
  const TaskPlace& task = *request.rendezvous.task;
  refuse_tpus(request);
  check_processes(request);
  const std::size_t gpus = usable_gpus(request, node);
  LaunchRequest of_node = request;
  of_node.nproc_per_node = {};
  if (gpus > 0 && node.gpus.gpus.size() < static_cast<std::size_t>(std::max(0, gpus_given))) {
    return choose_own(std::move(of_node), node, gpus);
  }
  of_node.devices = devices_of_node(request, gpus, gpus_given);
  DeviceChoice choice = choose_devices(of_node, node);
  choice.asked = request.devices;
  if (choice.devices.size() != static_cast<std::size_t>(task.ranks_here)) {
    const std::string makes = fmt::format(" makes {} here", counted(choice.devices.size(), "rank"));
    const bool is_count = request.devices.value.kind == DeviceRequest::Kind::kCount;  // hosts differ in their GPUs
    if (is_count) refuse_number(task, wrong_count(task, request.devices, makes));
    refuse_count(task, request.devices, makes);
  }
  return choice;
}

void place_task(const TaskPlace& task, LaunchPlan& plan) {
  NodePlan& node = plan.nodes.front();
  if (node.workers.size() != static_cast<std::size_t>(task.ranks_here)) {
    refuse_number(
        task, UserError(fmt::format("strategy '{}' has one process on a node, and this node has {}",
                                    text_of(plan.strategy.value), launchers_here(task)),
                        fmt::format("write '{}'", line_for(task, 1, fmt::format("--devices {}", task.ranks_here)))));
  }
  plan.world_size = task.ranks;
  plan.num_nodes = task.nodes;
  plan.is_of_one_rank = true;
  plan.ranks_by_node = task.ranks_by_node;
  node.node_rank = task.node_rank;
}

void keep_own_rank(const TaskPlace& task, LaunchPlan& plan) {
  NodePlan& node = plan.nodes.front();
  WorkerPlan own = std::move(node.workers.at(static_cast<std::size_t>(task.local_rank)));
  own.rank = node.base_rank = task.rank;
  own.node_rank = task.node_rank;
  node.devices = own.devices;
  node.workers_of_others = task.ranks_here - 1;
  node.workers = {std::move(own)};
}

}  // namespace lrun::launcher
