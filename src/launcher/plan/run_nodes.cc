// Chooses the nodes of a run and the devices of each from the request and the allocation. make_plan() calls it
// before all other decisions but that about TPUs.
#include "plan/run_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/nearest.h"
#include "base/user_error.h"
#include "cluster/allocation.h"
#include "plan/job_place.h"
#include "plan/task_place.h"
#include "plan/tpu_choice.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostWorkers = 1U << 20;

std::vector<AllocatedNode> nodes_asked_for(const LaunchRequest& request, const Allocation& allocation) {
  if (request.rendezvous.task) return {allocation.nodes.front()};
  const bool alone = request.standalone && request.min_nodes == 1;  // torchrun's '--standalone --nnodes 1:4'
  const int asked = alone ? 1 : request.num_nodes.value;
  if (asked < 1 || asked > kMostNodes) {
    throw UserError("'" + as_written(request.num_nodes) + "' is not a number of nodes",
                    "use 1 to " + std::to_string(kMostNodes));
  }
  if (request.standalone && !alone && asked > 1 && request.compat == Compat::kLrun) {
    throw UserError(fmt::format("'--standalone' is a run on this host alone, and '{}' asks for {} nodes",
                                as_written(request.num_nodes), asked),
                    "leave one of them out");
  }
  std::vector<AllocatedNode> nodes = allocation.nodes;
  const auto count = static_cast<std::size_t>(asked);
  if (request.num_nodes.given() && nodes.size() > count) nodes.resize(count);
  const auto rank = static_cast<std::size_t>(std::max(0, request.rendezvous.node_rank.value));
  while (nodes.size() < count) {
    AllocatedNode like_the_first = nodes.front();
    like_the_first.name.clear();
    nodes.push_back(std::move(like_the_first));
  }
  // Slurm has named other hosts for the nodes that lrun is to start.
  if (nodes_to_start(request, allocation) > 0) nodes.front().name.clear();
  // A plan that is only printed shows this host at its own rank.
  if (request.dry_run != DryRun::kNo && rank < count) {
    std::rotate(nodes.begin(), nodes.begin() + 1, nodes.begin() + static_cast<std::ptrdiff_t>(rank) + 1);
  }
  return nodes;
}

/// 'this host (no manager names other nodes), 3 more by --num-nodes'
std::string describe(std::size_t nodes, const LaunchRequest& request, const Allocation& allocation) {
  std::string text = fmt::format("{} ({})", allocation.source, allocation.reason);
  const bool by_manager = request.num_nodes.source == Source::kScheduler;  // `text` names it already
  if (nodes <= allocation.nodes.size() || by_manager) return text;
  return fmt::format("{}, {} more by {}", text, nodes - allocation.nodes.size(), request.num_nodes.origin);
}

/// The devices of a node: from the list of hosts if it names them, else from the request, which holds for all nodes.
DeviceChoice choose_for(const LaunchRequest& request, const AllocatedNode& node) {
  if (!node.devices.given()) return choose_devices(request, node);
  LaunchRequest of_node = request;
  of_node.nproc_per_node = {};
  of_node.devices = {node.devices, Source::kFlag, node.devices_origin};
  const bool is_list = node.devices.kind == DeviceRequest::Kind::kList;
  const bool on_cpus = request.accelerator.value == DeviceKind::kCpu;
  if (request.dry_run != DryRun::kNo && is_list && node.gpus.gpus.empty() && !on_cpus) {
    // The host that is meant may have these GPUs; this one does not. The plan is printed with as many CPU workers.
    of_node.devices.value = {DeviceRequest::Kind::kCount, static_cast<int>(node.devices.ids.size())};
  }
  return choose_devices(of_node, node);
}

std::vector<DeviceChoice> choose_for_all(const LaunchRequest& request, const std::vector<AllocatedNode>& nodes) {
  std::vector<DeviceChoice> choices;
  std::size_t total = 0;
  for (const AllocatedNode& node : nodes) {
    choices.push_back(choose_for(request, node));
    total += choices.back().devices.size();
    if (total > kMostWorkers) {
      throw UserError("more than " + std::to_string(kMostWorkers) + " devices are requested",
                      "check '--devices' and '--num-nodes'");
    }
    if (choices.back().accelerator.value != choices.front().accelerator.value) {
      throw UserError("'" + nodes.front().name + "' and '" + node.name + "' do not have the same kind of devices",
                      "use '--accelerator cpu'");
    }
  }
  return choices;
}

/// Two names of one host would use the same GPUs twice. On CPUs such a list is a trial run of several nodes.
void refuse_devices_twice(const LaunchRequest& request, const Allocation& allocation, const DeviceChoice& here) {
  const std::vector<std::string>& names = allocation.names_of_host;
  if (names.empty() || here.accelerator.value == DeviceKind::kCpu || request.share_gpus) return;
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back("'" + name + "'");
  throw UserError(join_words(quoted) + " are one host, and would use its devices twice",
                  "name it once, with all its workers: '-H " + names.front() + ":4'");
}

}  // namespace

int RunNodes::most_devices() const {
  std::size_t most = 0;
  for (const DeviceChoice& choice : choices) most = std::max(most, choice.devices.size());
  return static_cast<int>(most);
}

RunNodes choose_nodes(const LaunchRequest& request, const Allocation& allocation) {
  RunNodes run{nodes_asked_for(request, allocation), {}, {}};
  run.description = describe(run.nodes.size(), request, allocation);
  if (request.rendezvous.task) {
    run.choices = {choose_for_task(request, run.nodes.front(), allocation.gpus_given)};
  } else {
    run.choices = choose_for_all(request, run.nodes);
    refuse_devices_twice(request, allocation, run.choices.front());
  }
  check_tpu_mesh(run.nodes, run.choices);
  return run;
}

}  // namespace lrun::launcher
