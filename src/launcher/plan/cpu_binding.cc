// From the topology of a node's CPUs and the places of its devices to the CPUs of each worker. make_plan() calls
// bind_workers() for every node, and show_plan() writes the result.
#include "plan/cpu_binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/rank_list.h"
#include "base/user_error.h"

namespace lrun::launcher {
namespace {

using Cores = std::vector<Core>;

/// The cores of one device.
struct Share {
  Cores cores;
  int devices = 1;  ///< the number of devices that have these cores
};

Cores cores_on(const CpuTopology& topology, int Core::*place, int number) {
  Cores cores;
  for (const Core& core : topology.cores) {
    if (core.*place == number) cores.push_back(core);
  }
  return cores;
}

/// The NUMA node of every device of a node, worker by worker.
class Homes {
 public:
  Homes(const CpuTopology& topology, const NodePlan& node) {
    std::size_t unknown = 0;
    for (const WorkerPlan& worker : node.workers) {
      for (const DeviceId& device : worker.devices) {
        const bool usable = !cores_on(topology, &Core::numa_node, device.numa_node).empty();
        if (!usable && device.numa_node >= 0) unreachable_.push_back(device);
        nodes_.push_back(usable ? device.numa_node : -1);
        if (!usable) ++unknown;
      }
    }
    spread(topology, unknown);
  }

  [[nodiscard]] const std::vector<int>& nodes() const { return nodes_; }
  /// Devices on a NUMA node where this process may not use any CPU.
  [[nodiscard]] const std::vector<DeviceId>& unreachable() const { return unreachable_; }

 private:
  /// Devices without a NUMA node are spread in blocks: neighbours get neighbouring cores.
  void spread(const CpuTopology& topology, std::size_t unknown) {
    std::size_t place = 0;
    for (int& node : nodes_) {
      if (node < 0) node = topology.cores[place++ * topology.cores.size() / unknown].numa_node;
    }
  }

  std::vector<int> nodes_;
  std::vector<DeviceId> unreachable_;
};

/// The place-th of `count` parts. The first parts get one core more where the cores cannot be divided evenly.
Cores part_of(const Cores& cores, std::size_t place, std::size_t count) {
  const std::size_t size = cores.size() / count;
  const std::size_t more = cores.size() % count;
  const auto begin = static_cast<std::ptrdiff_t>(place * size + std::min(place, more));
  const auto length = static_cast<std::ptrdiff_t>(size + (place < more ? 1 : 0));
  return {cores.begin() + begin, cores.begin() + begin + length};
}

/// Groups of cores that share a cache, the largest first.
std::vector<Cores> cache_groups(const Cores& cores) {
  std::vector<Cores> groups;
  for (const Core& core : cores) {
    const auto same = [&](const Cores& group) { return group.front().cache == core.cache; };
    const auto found = std::find_if(groups.begin(), groups.end(), same);
    if (found == groups.end()) {
      groups.push_back({core});
    } else {
      found->push_back(core);
    }
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Cores& left, const Cores& right) { return left.size() > right.size(); });
  return groups;
}

/// The share of the place-th of the `count` devices on NUMA node `number`.
Share share_on_node(const Setting<Binding>& binding, const CpuTopology& topology, int number, int place, int count) {
  Cores cores = cores_on(topology, &Core::numa_node, number);
  if (binding.value == Binding::kNuma) return {std::move(cores), count};
  if (binding.value == Binding::kCore) {
    if (static_cast<std::size_t>(count) > cores.size()) {
      throw UserError(fmt::format("'{} {}' needs a core for each device, and NUMA node {} has {} for {}",
                                  binding.origin, text_of(binding.value), number, cores.size(), count),
                      "use '--bind numa', or fewer workers");
    }
    return {part_of(cores, static_cast<std::size_t>(place), static_cast<std::size_t>(count)), 1};
  }
  const std::vector<Cores> groups = cache_groups(cores);
  const int size = static_cast<int>(groups.size());
  const int chosen = place % size;
  return {groups[static_cast<std::size_t>(chosen)], (count - chosen + size - 1) / size};
}

std::vector<Share> shares_by_node(const Setting<Binding>& binding, const CpuTopology& topology,
                                  const std::vector<int>& homes) {
  std::map<int, int> placed;
  std::vector<Share> shares;
  for (const int home : homes) {
    const auto count = static_cast<int>(std::count(homes.begin(), homes.end(), home));
    shares.push_back(share_on_node(binding, topology, home, placed[home]++, count));
  }
  return shares;
}

std::vector<Share> shares_by_socket(const CpuTopology& topology, const std::vector<int>& homes) {
  std::vector<int> packages;
  for (const int home : homes) packages.push_back(cores_on(topology, &Core::numa_node, home).front().package);
  std::vector<Share> shares;
  for (const int package : packages) {
    const auto count = static_cast<int>(std::count(packages.begin(), packages.end(), package));
    shares.push_back({cores_on(topology, &Core::package, package), count});
  }
  return shares;
}

void give(WorkerPlan& worker, const std::vector<Share>& shares, std::size_t first, int most_threads) {
  int threads = most_threads;
  for (std::size_t i = first; i < first + worker.devices.size(); ++i) {
    threads = std::min(threads, static_cast<int>(shares[i].cores.size()) / shares[i].devices);
    for (const Core& core : shares[i].cores) {
      worker.cpus.insert(worker.cpus.end(), core.cpus.begin(), core.cpus.end());
      worker.numa_nodes.push_back(core.numa_node);
    }
  }
  for (std::vector<int>* numbers : {&worker.cpus, &worker.numa_nodes}) {
    std::sort(numbers->begin(), numbers->end());
    numbers->erase(std::unique(numbers->begin(), numbers->end()), numbers->end());
  }
  worker.omp_num_threads = std::max(1, threads);
}

bool is_bound_alike(const WorkerPlan& left, const WorkerPlan& right) {
  return left.cpus == right.cpus && left.omp_num_threads == right.omp_num_threads;
}

}  // namespace

std::vector<std::string> bind_workers(const Setting<Binding>& binding, const CpuTopology& topology, int most_threads,
                                      NodePlan& node) {
  std::vector<std::string> warnings;
  if (binding.value == Binding::kNone || topology.cores.empty()) return warnings;
  const Homes homes(topology, node);
  for (const DeviceId& device : homes.unreachable()) {
    warnings.push_back(
        fmt::format("GPU '{}' of '{}' is on NUMA node {}, where lrun may not use any CPU: its worker is "
                    "bound elsewhere",
                    device.id, node.name, device.numa_node));
  }
  const std::vector<Share> shares = binding.value == Binding::kSocket
                                        ? shares_by_socket(topology, homes.nodes())
                                        : shares_by_node(binding, topology, homes.nodes());
  std::size_t first = 0;
  for (WorkerPlan& worker : node.workers) {
    give(worker, shares, first, most_threads);
    first += worker.devices.size();
  }
  return warnings;
}

std::vector<std::string> binding_lines(const NodePlan& node) {
  std::vector<std::string> lines;
  for (auto first = node.workers.begin(); first != node.workers.end() && !first->cpus.empty();) {
    const auto end = std::find_if(first, node.workers.end(),
                                  [&](const WorkerPlan& worker) { return !is_bound_alike(worker, *first); });
    const int last = first->local_rank + static_cast<int>(end - first) - 1;
    const std::string ranks = last == first->local_rank ? fmt::format("local rank {}", last)
                                                        : fmt::format("local ranks {}-{}", first->local_rank, last);
    std::string line = fmt::format("{}: CPUs {} (NUMA node {})", ranks, format_rank_list(first->cpus),
                                   format_rank_list(first->numa_nodes));
    if (first->omp_num_threads > 0) {
      line += fmt::format(", {} thread{}{}", first->omp_num_threads, first->omp_num_threads == 1 ? "" : "s",
                          end - first == 1 ? "" : " each");
    }
    lines.push_back(std::move(line));
    first = end;
  }
  return lines;
}

}  // namespace lrun::launcher
