#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <vector>

#include "runtime/collectives/common/replica_link.h"

namespace lrun::detail {

/// A non-blocking NCCL communicator and a stream on each GPU, all of this process.
/// \throws Unsupported  no GPU that CUDA can use; LibTorch's CUDA library does not load. \throws Error  as ReplicaLink.
std::unique_ptr<ReplicaLink> make_nccl_replicas(const std::vector<at::Device>& devices);

}  // namespace lrun::detail
