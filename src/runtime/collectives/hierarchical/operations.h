#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/collectives/bootstrap/group_options.h"
#include "runtime/collectives/common/perform.h"
#include "runtime/collectives/common/posted_collectives.h"
#include "runtime/collectives/hierarchical/host_layout.h"

namespace lrun::detail {

/// One rank's part of the operations of a group over several hosts, with the groups of its host and of the leaders.
///
/// Threads  perform() on one thread at a time.
class HierarchicalOperations {
 public:
  /// \param inside   the ranks of this host in the order of the layout; null where there is one only.
  /// \param between  the hosts' leaders in the order of the layout; null on others, and where there is one host only.
  HierarchicalOperations(HostLayout layout, const GroupOptions& options, PostedCollectives* inside,
                         PostedCollectives* between);

  /// Takes part in operation `sequence`. \throws what the groups throw; CollectiveMismatch.
  void perform(Post& post, std::uint64_t sequence);

 private:
  void agree(const Call& call, std::uint64_t sequence);
  void all_reduce(const at::Tensor& tensor, ReduceOp op);
  void reduce_everywhere(const at::Tensor& tensor, ReduceOp op);
  void broadcast(const at::Tensor& tensor, int root);
  void all_gather(const Post& post);
  void reduce_scatter(const Post& post);
  void all_to_all(const Post& post);
  void gather(const at::Tensor& all, const at::Tensor& mine);
  at::Tensor inside(const Call& call, const at::Tensor& input, const at::Tensor& output);
  void between(const Call& call, const at::Tensor& input, const at::Tensor& output, const RowSizes& rows = {});

  const HostLayout layout_;
  const int rank_;
  const int world_size_;
  const std::vector<int> ranks_above_;
  const int host_;
  const int members_;  // of this host
  PostedCollectives* const inside_;
  PostedCollectives* const between_;
  Part part_;
};

}  // namespace lrun::detail
