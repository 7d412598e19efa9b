#include "runtime/ddp/flat_broadcast.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <unordered_set>

namespace lrun::detail {
namespace {

constexpr std::int64_t kPieceAlignment = 16;  // the widest dtype, complex double

std::int64_t bytes_of(const at::Tensor& tensor) {
  return tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
}

}  // namespace

FlatBroadcast::FlatBroadcast(const std::vector<at::Tensor>& tensors, std::int64_t chunk_bytes) {
  std::unordered_set<const at::TensorImpl*> seen;
  for (const auto& tensor : tensors) {
    if (!tensor.defined() || tensor.numel() == 0 || !seen.insert(tensor.unsafeGetTensorImpl()).second) continue;
    const std::int64_t bytes = (bytes_of(tensor) + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
    if (chunks_.empty() || chunks_.back().bytes + bytes > chunk_bytes) chunks_.emplace_back();
    Chunk& chunk = chunks_.back();
    chunk.packed.push_back({tensor, chunk.bytes});
    chunk.bytes += bytes;
  }
}

void FlatBroadcast::run(Collectives& collectives, int root) {
  if (collectives.world_size() == 1) return;
  at::NoGradGuard no_grad;
  for (const auto& chunk : chunks_) run_chunk(chunk, collectives, root);
}

void FlatBroadcast::run_chunk(const Chunk& chunk, Collectives& collectives, int root) {
  // variable_data(): new values of a buffer are no in-place operation of the program's, which autograd would refuse
  // when the module was called twice before backward().
  if (chunk.packed.size() == 1 && chunk.packed.front().tensor.is_contiguous()) {
    return collectives.broadcast(chunk.packed.front().tensor.variable_data(), root);
  }
  const auto& first = chunk.packed.front().tensor;
  const auto flat = at::empty({chunk.bytes}, first.options().dtype(at::kByte).requires_grad(false));
  const bool sends = collectives.rank() == root;
  for (const bool before : {true, false}) {
    if (!before) collectives.broadcast(flat, root);
    if (before != sends) continue;
    for (const auto& [tensor, offset] : chunk.packed) {
      const auto data = tensor.variable_data();
      const auto place = flat.narrow(0, offset, bytes_of(tensor)).view(tensor.scalar_type()).view(tensor.sizes());
      sends ? place.copy_(data) : data.copy_(place);
    }
  }
}

}  // namespace lrun::detail
