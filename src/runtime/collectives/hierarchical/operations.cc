// In: one rank's operations on the whole group. Out: operations of the group of its host and of the group of the hosts'
// leaders. Called by the group 'shm+gloo' on the queue's thread.
#include "runtime/collectives/hierarchical/operations.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>

#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/collectives/common/call.h"

namespace lrun::detail {
namespace {

/// The same memory without the tensor's history, so that autograd does not record the change.
at::Tensor memory_of(const at::Tensor& tensor) {
  return at::from_blob(tensor.mutable_data_ptr(), tensor.sizes(), at::TensorOptions().dtype(tensor.scalar_type()));
}

at::Tensor readable_memory_of(const at::Tensor& tensor) {
  return at::from_blob(const_cast<void*>(tensor.const_data_ptr()), tensor.sizes(),
                       at::TensorOptions().dtype(tensor.scalar_type()));
}

at::Tensor bytes_at(void* data, std::size_t bytes) {
  return at::from_blob(data, {static_cast<std::int64_t>(bytes)}, at::TensorOptions().dtype(at::kByte));
}

bool is_half(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
}

}  // namespace

HierarchicalOperations::HierarchicalOperations(HostLayout layout, const GroupOptions& options,
                                               PostedCollectives* inside, PostedCollectives* between)
    : layout_(std::move(layout)),
      rank_(options.rank),
      world_size_(options.world_size),
      ranks_above_(options.ranks_above),
      host_(layout_.host_of(rank_)),
      members_(static_cast<int>(layout_.ranks[static_cast<std::size_t>(host_)].size())),
      inside_(inside),
      between_(between) {}

void HierarchicalOperations::perform(Post& post, std::uint64_t sequence) {
  const at::NoGradGuard no_grad;
  part_ = {post.call.operation, sequence, {}};
  agree(post.call, sequence);
  switch (post.call.operation) {
    case Call::Operation::kAllReduce:
      return all_reduce(memory_of(post.output), static_cast<ReduceOp>(post.call.op));
    case Call::Operation::kBroadcast:
      return broadcast(memory_of(post.output), post.call.root);
    case Call::Operation::kAllGather:
      return all_gather(post);
    case Call::Operation::kReduceScatter:
      return reduce_scatter(post);
    case Call::Operation::kAllToAll:
      return all_to_all(post);
    case Call::Operation::kAllocateBucket:
      post.output = inside(post.call, {}, {});
      if (!post.output.defined()) post.output = ordinary_bucket(post.call);
      return;
    case Call::Operation::kBarrier:
      return;
  }
}

/// Every rank gets every call, so that all find the same difference.
void HierarchicalOperations::agree(const Call& call, std::uint64_t sequence) {
  std::vector<Call> calls(static_cast<std::size_t>(world_size_));
  Call mine = call;
  gather(bytes_at(calls.data(), calls.size() * sizeof(Call)), bytes_at(&mine, sizeof mine));
  for (int rank = 1; rank < world_size_; ++rank) {
    const Call& other = calls[static_cast<std::size_t>(rank)];
    if (other == calls[0]) continue;
    Failure{Failure::Kind::kMismatch, describe_mismatch(calls[0], rank, other, sequence, ranks_above_)}.raise();
  }
}

void HierarchicalOperations::all_reduce(const at::Tensor& tensor, ReduceOp op) {
  if (op != ReduceOp::kAverage) return reduce_everywhere(tensor, op);
  if (!is_half(tensor)) return reduce_everywhere(tensor, op);
  at::Tensor wide = tensor.to(at::kFloat);
  reduce_everywhere(wide, op);
  tensor.copy_(wide);
}

void HierarchicalOperations::reduce_everywhere(const at::Tensor& tensor, ReduceOp op) {
  const ReduceOp part = op == ReduceOp::kAverage ? ReduceOp::kSum : op;
  inside(all_reduce_call(tensor, part, 0), tensor, tensor);
  between(all_reduce_call(tensor, part, 0), tensor, tensor);
  const bool leads = layout_.place_in_host(rank_) == 0;
  if (leads && op == ReduceOp::kAverage) at::Tensor(tensor).div_(world_size_);
  inside(broadcast_call(tensor, 0, members_), tensor, tensor);
}

void HierarchicalOperations::broadcast(const at::Tensor& tensor, int root) {
  const int from = layout_.host_of(root);
  if (from == host_) inside(broadcast_call(tensor, layout_.place_in_host(root), members_), tensor, tensor);
  between(broadcast_call(tensor, from, layout_.hosts()), tensor, tensor);
  if (from != host_) inside(broadcast_call(tensor, 0, members_), tensor, tensor);
}

void HierarchicalOperations::all_gather(const Post& post) {
  const std::size_t bytes = post.input.nbytes();
  gather(bytes_at(post.output.mutable_data_ptr(), post.output.nbytes()),
         bytes_at(const_cast<void*>(post.input.const_data_ptr()), bytes));
}

void HierarchicalOperations::reduce_scatter(const Post& post) {
  at::Tensor all = at::empty(post.input.sizes(), at::TensorOptions().dtype(post.input.scalar_type()));
  if (all.nbytes() == 0) return all_reduce(all, static_cast<ReduceOp>(post.call.op));
  std::memcpy(all.mutable_data_ptr(), post.input.const_data_ptr(), all.nbytes());
  all_reduce(all, static_cast<ReduceOp>(post.call.op));
  const std::size_t row = post.output.nbytes();
  std::memcpy(post.output.mutable_data_ptr(),
              static_cast<const std::byte*>(all.const_data_ptr()) + row * static_cast<std::size_t>(rank_), row);
}

/// Between two hosts go the rows from ranks of the one to ranks of the other; [i][j] is from its i-th to its j-th rank.
void HierarchicalOperations::all_to_all(const Post& post) {
  const auto bytes = static_cast<std::int64_t>(post.input.element_size()) * post.call.count;
  if (bytes == 0) return;
  const auto options = at::TensorOptions().dtype(at::kByte);
  const at::Tensor mine = post.rows.pad(readable_memory_of(post.input)).view(at::kByte);
  const at::Tensor host = at::empty({members_, world_size_, bytes}, options);
  if (!inside(all_gather_call(host, mine, members_), mine, host).defined()) host[0].copy_(mine);
  const std::int64_t most = layout_.most_ranks();
  const at::Tensor leaving = at::empty({layout_.hosts(), most, most, bytes}, options);
  const at::Tensor coming = at::empty_like(leaving);
  if (layout_.place_in_host(rank_) == 0) {
    for (int rank = 0; rank < world_size_; ++rank) {
      leaving[layout_.host_of(rank)]
          .narrow(0, 0, members_)
          .select(1, layout_.place_in_host(rank))
          .copy_(host.select(1, rank));
    }
    if (between_ == nullptr) coming.copy_(leaving);
  }
  const RowSizes rows = RowSizes::equal(layout_.hosts(), leaving.sizes().slice(1));
  between(all_to_all_call(coming, leaving, rows), leaving, coming, rows);
  inside(broadcast_call(coming, 0, members_), coming, coming);
  at::Tensor arrived = at::empty({world_size_, bytes}, options);
  for (int rank = 0; rank < world_size_; ++rank) {
    arrived[rank].copy_(coming[layout_.host_of(rank)][layout_.place_in_host(rank)][layout_.place_in_host(rank_)]);
  }
  post.rows.take(memory_of(post.output), arrived.view(post.output.scalar_type()));
}

/// `all` becomes every rank's `mine` in the order of ranks; bytes. Hosts with fewer ranks than others send as many
/// rows.
void HierarchicalOperations::gather(const at::Tensor& all, const at::Tensor& mine) {
  const std::int64_t bytes = mine.numel();
  const std::int64_t most = layout_.most_ranks();
  at::Tensor host = at::empty({most, bytes}, at::TensorOptions().dtype(at::kByte));
  const at::Tensor rows = host.narrow(0, 0, members_);
  if (!inside(all_gather_call(rows, mine, members_), mine, rows).defined()) rows[0].copy_(mine);
  at::Tensor hosts = host.unsqueeze(0);
  if (layout_.hosts() > 1) {
    hosts = at::empty({layout_.hosts(), most, bytes}, at::TensorOptions().dtype(at::kByte));
    between(all_gather_call(hosts, host, layout_.hosts()), host, hosts);
  }
  if (layout_.place_in_host(rank_) == 0) {
    for (int h = 0; h < layout_.hosts(); ++h) {
      const auto& members = layout_.ranks[static_cast<std::size_t>(h)];
      for (std::size_t place = 0; place < members.size(); ++place) {
        all.narrow(0, members[place] * bytes, bytes).copy_(hosts[h][static_cast<std::int64_t>(place)]);
      }
    }
  }
  inside(broadcast_call(all, 0, members_), all, all);
}

/// \return  undefined where this rank is alone on its host.
at::Tensor HierarchicalOperations::inside(const Call& call, const at::Tensor& input, const at::Tensor& output) {
  if (inside_ == nullptr) return {};
  at::Tensor result = inside_->finish({call, input, output, part_});
  // From now on this host may wait for others through its leader. The leader's own deadline must strike first.
  if (layout_.hosts() > 1) part_.grace = 2 * inside_->timeout() + std::chrono::seconds(5);
  return result;
}

void HierarchicalOperations::between(const Call& call, const at::Tensor& input, const at::Tensor& output,
                                     const RowSizes& rows) {
  if (between_ != nullptr) between_->finish({call, input, output, Part{part_.operation, part_.sequence, {}}, rows});
}

}  // namespace lrun::detail
