#pragma once

#include <lrun/collectives.h>

#include <memory>

#include "runtime/collectives/cuda_library.h"

namespace lrun::detail {

/// Collectives named 'nccl', of processes with a GPU each: the current device of the thread that makes them. Operations
/// run on a stream of their own, after the work on the caller's current stream; wait() makes that stream wait, not the
/// caller. A watchdog ends them when a rank dies, aborts, or is silent until the deadline, and notifies the others
/// through the store. Tensors of the CPU travel through the GPU, and their operations return with the result. Kernels
/// that were ended leave their tensors unspecified: the next call throws.
///
/// NCCL does not compare calls: ranks that call different operations are seen at the deadline.
/// \throws Unsupported  no GPU that CUDA can use; LibTorch's CUDA library does not load; ranks share a GPU.
/// \throws as make_collectives().
std::unique_ptr<Collectives> make_nccl(const CudaGroup& group);

}  // namespace lrun::detail
