#include <lrun/export.h>

#include "runtime/collectives/cuda_library.h"
#include "runtime/cuda/nccl_collectives.h"

extern "C" LRUN_EXPORT lrun::Collectives* lrun_cuda_make_collectives_v2(const lrun::CudaGroup* group);

extern "C" lrun::Collectives* lrun_cuda_make_collectives_v2(const lrun::CudaGroup* group) {
  return lrun::make_nccl(*group).release();
}
