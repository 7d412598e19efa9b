// Reads cores, caches and NUMA nodes of the CPUs that this process may use from /sys. local_host() calls it when
// workers are to be bound to CPUs.
#include "cluster/cpu_topology.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

#include "cluster/system_file.h"

namespace lrun::launcher {
namespace {

using NodeOfCpu = std::map<int, int>;

/// The NUMA node of each CPU.
NodeOfCpu numa_nodes(const std::string& root) {
  const std::string folder = root + "/sys/devices/system/node/";
  NodeOfCpu nodes;
  for (const std::string& name : list_names(folder)) {
    int node = 0;
    const auto [end, error] =
        std::from_chars(name.data() + std::min<std::size_t>(4, name.size()), name.data() + name.size(), node);
    if (!name.starts_with("node") || error != std::errc() || end != name.data() + name.size()) continue;
    for (const int cpu : parse_cpu_list(read_line(folder + name + "/cpulist"))) nodes[cpu] = node;
  }
  return nodes;
}

/// The first CPU of those that share the largest cache with `cpu`; `cpu` itself when /sys does not tell.
int cache_of(const std::string& cpu_folder, int cpu) {
  long highest = 0;
  int first = cpu;
  for (const std::string& name : list_names(cpu_folder + "/cache")) {
    const std::string folder = cpu_folder + "/cache/" + name;
    // The caches of a core are index0, index1 …; their order differs between processors, their level does not.
    const long level = name.starts_with("index") ? read_number(folder + "/level", 0) : 0;
    if (level <= highest || read_line(folder + "/type") == "Instruction") continue;
    const std::vector<int> sharing = parse_cpu_list(read_line(folder + "/shared_cpu_list"));
    if (sharing.empty()) continue;
    highest = level;
    first = sharing.front();
  }
  return first;
}

Core read_core(const std::string& cpu_folder, int cpu, const std::vector<int>& allowed) {
  Core core{{cpu}, 0, 0, 0};
  for (const int sibling : parse_cpu_list(read_line(cpu_folder + "/topology/thread_siblings_list"))) {
    if (sibling > cpu && std::binary_search(allowed.begin(), allowed.end(), sibling)) core.cpus.push_back(sibling);
  }
  core.package = static_cast<int>(read_number(cpu_folder + "/topology/physical_package_id", 0));
  core.cache = cache_of(cpu_folder, cpu);
  return core;
}

}  // namespace

int CpuTopology::cpus() const {
  std::size_t count = 0;
  for (const Core& core : cores) count += core.cpus.size();
  return static_cast<int>(count);
}

std::vector<int> parse_cpu_list(const std::string& text) {
  constexpr int kMostCpus = 1 << 16;
  std::vector<int> cpus;
  const char* next = text.data();
  const char* const end = text.data() + text.size();
  while (next < end) {
    int first = 0;
    auto result = std::from_chars(next, end, first);
    if (result.ec != std::errc() || first < 0) break;
    int last = first;
    if (result.ptr < end && *result.ptr == '-') {
      result = std::from_chars(result.ptr + 1, end, last);
      if (result.ec != std::errc()) break;
    }
    if (last < first || last >= kMostCpus) break;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (result.ptr == end || *result.ptr != ',') break;
    next = result.ptr + 1;
  }
  return cpus;
}

CpuTopology read_topology(const std::vector<int>& allowed, const std::string& root) {
  std::vector<int> sorted = allowed;
  std::sort(sorted.begin(), sorted.end());
  const NodeOfCpu nodes = numa_nodes(root);
  CpuTopology topology;
  std::vector<int> done;
  for (const int cpu : sorted) {
    // A hardware thread that an earlier CPU's core has taken is no core of its own.
    if (std::find(done.begin(), done.end(), cpu) != done.end()) continue;
    Core core = read_core(root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu), cpu, sorted);
    if (const auto node = nodes.find(cpu); node != nodes.end()) core.numa_node = node->second;
    done.insert(done.end(), core.cpus.begin(), core.cpus.end());
    topology.cores.push_back(std::move(core));
  }
  std::stable_sort(topology.cores.begin(), topology.cores.end(),
                   [](const Core& left, const Core& right) { return left.numa_node < right.numa_node; });
  return topology;
}

int numa_node_of(const std::string& pci_address, const std::string& root) {
  if (pci_address.empty()) return -1;
  return static_cast<int>(read_number(root + "/sys/bus/pci/devices/" + pci_address + "/numa_node", -1));
}

}  // namespace lrun::launcher
