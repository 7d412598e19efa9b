#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/collectives.h>
#include <nccl.h>

namespace lrun::detail {

/// NCCL's name of a tensor's dtype. \throws std::invalid_argument  one that cannot be reduced.
ncclDataType_t type_of(const at::Tensor& tensor);

/// \throws std::invalid_argument  the average of integers.
ncclRedOp_t operation_of(const at::Tensor& tensor, ReduceOp op);

}  // namespace lrun::detail
