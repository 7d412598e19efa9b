#pragma once

#include <string>
#include <vector>

namespace lrun::launcher {

/// A physical core, as far as this process may use it.
struct Core {
  std::vector<int> cpus;  ///< its hardware threads that may be used, as the kernel numbers them; never empty
  int numa_node = 0;
  int package = 0;  ///< the socket
  int cache = 0;    ///< the first CPU of those that share its largest cache: equal for cores that share it

  bool operator==(const Core&) const = default;
};

/// The cores of a machine that this process may use, by NUMA node and then by number. Empty when nobody asked.
struct CpuTopology {
  std::vector<Core> cores;

  [[nodiscard]] int cpus() const;  ///< hardware threads in all
  bool operator==(const CpuTopology&) const = default;
};

/// Numbers in the kernel's form '0-3,8'. What cannot be read ends the list.
std::vector<int> parse_cpu_list(const std::string& text);

/// The topology of `allowed` CPUs, from /sys. What it does not say (a container may hide it) is taken to be simple: one
/// NUMA node, one thread a core. `root` is put before every path that is read, for tests.
CpuTopology read_topology(const std::vector<int>& allowed, const std::string& root = {});

/// The NUMA node next to a PCI device, '0000:10:00.0'; -1 when the machine does not say.
int numa_node_of(const std::string& pci_address, const std::string& root = {});

}  // namespace lrun::launcher
