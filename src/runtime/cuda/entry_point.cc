#include <lrun/export.h>

#include "runtime/collectives/cuda_library.h"
#include "runtime/cuda/nccl_collectives.h"
#include "runtime/cuda/nccl_replicas.h"

extern "C" {

LRUN_EXPORT lrun::Collectives* lrun_cuda_make_collectives_v4(const lrun::detail::CudaGroup* group);
LRUN_EXPORT lrun::detail::ReplicaLink* lrun_cuda_make_replica_link_v1(const std::vector<at::Device>* devices);

lrun::Collectives* lrun_cuda_make_collectives_v4(const lrun::detail::CudaGroup* group) {
  return lrun::detail::make_nccl(*group).release();
}

lrun::detail::ReplicaLink* lrun_cuda_make_replica_link_v1(const std::vector<at::Device>* devices) {
  return lrun::detail::make_nccl_replicas(*devices).release();
}
}
