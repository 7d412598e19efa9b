#pragma once

#include <string>
#include <vector>

#include "runtime/collectives/bootstrap/group_options.h"

namespace lrun::detail {

/// The GPU of a rank, as NCCL tells GPUs apart.
struct GpuOfRank {
  std::string host;    ///< of any form
  std::string bus_id;  ///< of the PCI bus; empty: not known
};

/// Why NCCL would refuse these ranks: the first ones that share a GPU, and what to do; empty: each has its own. Pure.
std::string describe_shared_gpu(const std::vector<GpuOfRank>& gpus, const GroupOptions& options);

}  // namespace lrun::detail
