#pragma once

#include <string>
#include <vector>

namespace lrun::launcher {

/// A physical core with the hardware threads that this process may use.
struct Core {
  std::vector<int> cpus;  ///< usable hardware threads, by the kernel's numbers; never empty
  int numa_node = 0;
  int package = 0;  ///< the socket
  int cache = 0;    ///< the first CPU of those that share its largest cache; equal for cores that share the cache

  bool operator==(const Core&) const = default;
};

/// The cores of a machine that this process may use, by NUMA node and then by number. Empty when it was not looked up.
struct CpuTopology {
  std::vector<Core> cores;

  [[nodiscard]] int cpus() const;  ///< hardware threads in all
  bool operator==(const CpuTopology&) const = default;
};

/// Reads the kernel's form '0-3,8'. The list ends at the first text that is not of this form.
std::vector<int> parse_cpu_list(const std::string& text);

/// The topology of `allowed` CPUs, from /sys. A container may hide parts of it: then there is one NUMA node, or one
/// thread per core. `root` is put before every path that is read, for tests.
CpuTopology read_topology(const std::vector<int>& allowed, const std::string& root = {});

/// The NUMA node closest to a PCI device, '0000:10:00.0'; -1 when it is unknown.
int numa_node_of(const std::string& pci_address, const std::string& root = {});

}  // namespace lrun::launcher
