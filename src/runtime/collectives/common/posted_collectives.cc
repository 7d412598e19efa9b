#include "runtime/collectives/common/posted_collectives.h"

#include <ATen/ops/zeros.h>

#include <utility>

#include "runtime/collectives/common/call.h"

namespace lrun::detail {

at::Tensor PostedCollectives::allocate_bucket(std::int64_t count, at::ScalarType dtype) {
  return finish({allocate_bucket_call(count, dtype), {}, {}});
}

std::unique_ptr<CollectiveWork> PostedCollectives::all_reduce(at::Tensor tensor, ReduceOp op, std::uint64_t tag) {
  const Call call = all_reduce_call(tensor, op, tag);
  return start({call, tensor, tensor});
}

void PostedCollectives::broadcast(at::Tensor tensor, int root) {
  const Call call = broadcast_call(tensor, root, world_size());
  finish({call, tensor, tensor});
}

void PostedCollectives::all_gather(at::Tensor output, const at::Tensor& input) {
  const Call call = all_gather_call(output, input, world_size());
  finish({call, input, std::move(output)});
}

void PostedCollectives::reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) {
  const Call call = reduce_scatter_call(output, input, op, world_size());
  finish({call, input, std::move(output)});
}

void PostedCollectives::move_rows(at::Tensor output, const at::Tensor& input, const RowSizes& sizes) {
  const Call call = all_to_all_call(output, input, sizes);
  finish({call, input, std::move(output), {}, sizes});
}

void PostedCollectives::barrier() { finish({barrier_call(), {}, {}}); }

void PostedCollectives::abort(const std::string& reason) { fail({Failure::Kind::kPeerLost, reason}); }

at::Tensor ordinary_bucket(const Call& call) {
  return at::zeros({call.count}, at::TensorOptions().dtype(static_cast<at::ScalarType>(call.dtype)));
}

}  // namespace lrun::detail
