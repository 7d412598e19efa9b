#include "runtime/cuda/cuda_calls.h"

#include <dlfcn.h>
#include <lrun/error.h>

namespace lrun::detail {

void check_cuda(cudaError_t result, const std::string& call) {
  if (result == cudaSuccess) return;
  throw Error("backend 'nccl': " + call + ": " + cudaGetErrorString(result));
}

void check_nccl(ncclResult_t result, const std::string& call) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw Error("backend 'nccl': " + call + ": " + ncclGetErrorString(result));
}

void require_cuda() {
  int devices = 0;
  if (const cudaError_t result = cudaGetDeviceCount(&devices); result != cudaSuccess || devices == 0) {
    throw Unsupported("backend 'nccl' needs a GPU that CUDA can use, and there is none (" +
                      std::string(result == cudaSuccess ? "no device" : cudaGetErrorString(result)) +
                      "); on CPUs use 'auto'");
  }
  if (::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
  const char* reason = ::dlerror();
  throw Unsupported(std::string("backend 'nccl' needs LibTorch's CUDA library, which does not load (") +
                    (reason == nullptr ? "no reason given" : reason) + ")");
}

}  // namespace lrun::detail
