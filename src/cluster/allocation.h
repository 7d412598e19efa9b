#pragma once

#include <string>
#include <vector>

namespace lrun {

/// A GPU that programs started here would see.
struct Gpu {
  int index = 0;     ///< NVML's (PCI bus order); -1 for a MIG instance
  std::string uuid;  ///< 'GPU-…' or 'MIG-…'; empty when the GPU is lost
  std::string
      visible_as;     ///< how CUDA_VISIBLE_DEVICES of a worker has to name it: as the user's own does, else the index
  bool lost = false;  ///< fell off the bus: the driver still counts it, nothing can use it

  bool operator==(const Gpu&) const = default;
};

/// What the NVIDIA driver said when it was asked for GPUs.
enum class GpuAnswer {
  kNotAsked,         ///< nothing in the request depends on it
  kNoLibrary,        ///< there is no libnvidia-ml.so.1: a machine without GPUs
  kDriverNotLoaded,  ///< the library is there, the kernel driver is not
  kFailed,           ///< anything else; GpuInventory::detail has the driver's words
  kCounted,          ///< `gpus` is the truth, also when it is empty
};

struct GpuInventory {
  GpuAnswer answer = GpuAnswer::kNotAsked;
  std::vector<Gpu> gpus;
  std::string detail;  ///< for people: why there are none, or fewer than the machine has

  bool operator==(const GpuInventory&) const = default;
};

/// What a plan depends on: looking at the rest would cost every start.
struct Questions {
  bool gpus = false;  ///< open the driver
  bool cpus = false;  ///< read the cgroups' CPU quotas; without, `cpus` of a node is by affinity alone
};

/// One machine of an allocation.
struct AllocatedNode {
  std::string name;
  int cpus = 1;  ///< usable ones: affinity and cgroup quota are taken off
  GpuInventory gpus;

  bool operator==(const AllocatedNode&) const = default;
};

/// Where a run may be placed, in rank order, and who says so.
struct Allocation {
  std::vector<AllocatedNode> nodes;  ///< never empty; the first is this host
  std::string source;                ///< 'this host'
  std::string reason;                ///< why that source was chosen, from which variables

  bool operator==(const Allocation&) const = default;
};

}  // namespace lrun
