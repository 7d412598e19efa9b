#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>

namespace lrun::detail {

/// A CUDA or NCCL call that failed. \throws lrun::Error  with the call and its reason, unless it succeeded.
void check_cuda(cudaError_t result, const std::string& call);
/// A non-blocking call that has only begun is no failure.
void check_nccl(ncclResult_t result, const std::string& call);

/// Loads LibTorch's CUDA side; a program on GPUs has it already, or could not make a tensor there.
/// \throws Unsupported  no GPU that CUDA can use; the library does not load.
void require_cuda();

}  // namespace lrun::detail
