// In: the arguments of one operation, as one rank passed them. Out: a checked Call, and the text of a difference or a
// timeout. Called by all backends.
#include "runtime/collectives/common/call.h"

#include <stdexcept>
#include <string_view>

#include "runtime/collectives/common/bucket_tag.h"
#include "runtime/collectives/common/failure.h"
#include "runtime/collectives/common/reduce.h"

namespace lrun::detail {
namespace {

std::string_view operation_name(Call::Operation operation) {
  switch (operation) {
    case Call::Operation::kAllReduce:
      return "all_reduce";
    case Call::Operation::kBroadcast:
      return "broadcast";
    case Call::Operation::kAllGather:
      return "all_gather";
    case Call::Operation::kReduceScatter:
      return "reduce_scatter";
    case Call::Operation::kBarrier:
      return "barrier";
    case Call::Operation::kAllocateBucket:
      return "allocate_bucket";
    case Call::Operation::kAllToAll:
      return "all_to_all";
  }
  return "unknown operation";
}

std::string_view op_name(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kAverage:
      return "average";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kMin:
      return "min";
  }
  return "unknown op";
}

std::string dtype_name(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kInt:
      return "int32";
    case at::kLong:
      return "int64";
    case at::kByte:
      return "uint8";
    default:
      return c10::toString(dtype);
  }
}

[[noreturn]] void refuse(Call::Operation operation, const std::string& why) {
  throw std::invalid_argument(std::string(operation_name(operation)) + ": " + why);
}

void check_memory(Call::Operation operation, const at::Tensor& tensor) {
  if (!tensor.defined()) refuse(operation, "the tensor is undefined");
  if (!tensor.device().is_cpu()) refuse(operation, "the tensor is on " + tensor.device().str() + ", not on the CPU");
  if (tensor.layout() != at::kStrided || !tensor.is_contiguous()) refuse(operation, "the tensor is not contiguous");
}

void check_reduction(Call::Operation operation, at::ScalarType dtype, ReduceOp op) {
  if (!can_reduce(dtype)) refuse(operation, dtype_name(dtype) + " cannot be reduced");
  if (op == ReduceOp::kAverage && !at::isFloatingType(dtype)) {
    refuse(operation, "the average of " + dtype_name(dtype) + " is not a whole number; use sum");
  }
}

Call call_of(Call::Operation operation, const at::Tensor& tensor) {
  check_memory(operation, tensor);
  Call call;
  call.operation = operation;
  call.dtype = static_cast<std::int32_t>(tensor.scalar_type());
  set_shape(call, tensor.sizes());
  return call;
}

/// Checks that `whole` is (world_size, *part.shape) of the same dtype.
void check_rows(Call::Operation operation, const at::Tensor& whole, const at::Tensor& part, int world_size) {
  check_memory(operation, whole);
  const bool fits = whole.dim() == part.dim() + 1 && whole.size(0) == world_size &&
                    whole.sizes().slice(1) == part.sizes() && whole.scalar_type() == part.scalar_type();
  if (!fits) {
    refuse(operation, "one tensor has to be (" + std::to_string(world_size) + ", *shape) of the other, of its dtype");
  }
}

std::string shape_text(const Call& call) {
  if (call.dimensions > Call::kMaxDimensions) return "[" + std::to_string(call.count) + " elements]";
  std::string text = "[";
  for (std::int32_t i = 0; i < call.dimensions; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(call.sizes[static_cast<std::size_t>(i)]);
  }
  return text + "]";
}

}  // namespace

Call all_reduce_call(const at::Tensor& tensor, ReduceOp op, std::uint64_t tag) {
  Call call = call_of(Call::Operation::kAllReduce, tensor);
  check_reduction(call.operation, tensor.scalar_type(), op);
  call.op = static_cast<std::int32_t>(op);
  call.tag = tag;
  return call;
}

Call broadcast_call(const at::Tensor& tensor, int root, int world_size) {
  Call call = call_of(Call::Operation::kBroadcast, tensor);
  if (root < 0 || root >= world_size) {
    refuse(call.operation, "there is no rank " + std::to_string(root) + " in a world of " + std::to_string(world_size));
  }
  call.root = root;
  return call;
}

Call all_gather_call(const at::Tensor& output, const at::Tensor& input, int world_size) {
  Call call = call_of(Call::Operation::kAllGather, input);
  check_rows(call.operation, output, input, world_size);
  return call;
}

Call reduce_scatter_call(const at::Tensor& output, const at::Tensor& input, ReduceOp op, int world_size) {
  Call call = call_of(Call::Operation::kReduceScatter, output);
  check_rows(call.operation, input, output, world_size);
  check_reduction(call.operation, output.scalar_type(), op);
  call.op = static_cast<std::int32_t>(op);
  return call;
}

Call all_to_all_call(const at::Tensor& output, const at::Tensor& input, const RowSizes& sizes) {
  check_memory(Call::Operation::kAllToAll, output);
  Call call = call_of(Call::Operation::kAllToAll, input);
  set_shape(call, sizes.longest);
  return call;
}

Call barrier_call() { return {}; }

Call allocate_bucket_call(std::int64_t count, at::ScalarType dtype) {
  if (count < 0) refuse(Call::Operation::kAllocateBucket, "a bucket of " + std::to_string(count) + " elements");
  Call call;
  call.operation = Call::Operation::kAllocateBucket;
  call.dtype = static_cast<std::int32_t>(dtype);
  call.count = count;
  call.dimensions = 1;
  call.sizes[0] = count;
  return call;
}

std::string name_call(Call::Operation operation, std::uint64_t sequence) {
  return std::string(operation_name(operation)) + " #" + std::to_string(sequence);
}

std::string describe_call(const Call& call, std::uint64_t sequence, const std::vector<int>& ranks_above) {
  std::string text = name_call(call.operation, sequence);
  if (call.operation == Call::Operation::kBarrier) return text;
  text += " of " + dtype_name(static_cast<at::ScalarType>(call.dtype)) + shape_text(call);
  if (call.op >= 0) text += " (" + std::string(op_name(static_cast<ReduceOp>(call.op))) + ")";
  if (call.root >= 0) text += " from rank " + std::to_string(name_of_rank(call.root, ranks_above));
  return text + describe_tag(call.tag);
}

std::string describe_mismatch(const Call& first, int rank, const Call& other, std::uint64_t sequence,
                              const std::vector<int>& ranks_above) {
  const auto says = [&](int one, const Call& call) {
    return "rank " + std::to_string(name_of_rank(one, ranks_above)) + " called " +
           describe_call(call, sequence, ranks_above);
  };
  return says(0, first) + ", but " + says(rank, other) + explain_tags(first.tag, other.tag);
}

std::string describe_timeout(Call::Operation operation, std::uint64_t sequence, std::chrono::milliseconds timeout,
                             const std::vector<int>& missing, bool called) {
  const std::string what = !called ? " did not call it" : missing.size() == 1 ? " is silent" : " are silent";
  return name_call(operation, sequence) + " did not finish within " + std::to_string(timeout.count()) +
         " ms: " + name_ranks(missing) + what;
}

}  // namespace lrun::detail
