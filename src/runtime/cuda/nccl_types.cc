#include "runtime/cuda/nccl_types.h"

#include <stdexcept>
#include <string>

namespace lrun::detail {

ncclDataType_t type_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kHalf:
      return ncclFloat16;
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kFloat:
      return ncclFloat32;
    case at::kDouble:
      return ncclFloat64;
    case at::kInt:
      return ncclInt32;
    case at::kLong:
      return ncclInt64;
    case at::kByte:
      return ncclUint8;
    default:
      throw std::invalid_argument(std::string(c10::toString(tensor.scalar_type())) + " cannot be reduced");
  }
}

ncclRedOp_t operation_of(const at::Tensor& tensor, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return ncclSum;
    case ReduceOp::kAverage:
      if (at::isFloatingType(tensor.scalar_type())) return ncclAvg;
      throw std::invalid_argument("the average of integers is not a whole number; use sum");
    case ReduceOp::kMax:
      return ncclMax;
    case ReduceOp::kMin:
      return ncclMin;
  }
  throw std::invalid_argument("unknown reduction");
}

}  // namespace lrun::detail
