#pragma once

#include <lrun/collectives.h>

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/collectives/common/failure.h"
#include "runtime/collectives/common/group_member.h"
#include "runtime/collectives/common/perform.h"

namespace lrun::detail {

/// Collectives that check the arguments of each call and pass it on as a Post, whichever backend performs it.
class PostedCollectives : public GroupMember {
 public:
  at::Tensor allocate_bucket(std::int64_t count, at::ScalarType dtype) final;
  using Collectives::all_reduce;
  std::unique_ptr<CollectiveWork> all_reduce(at::Tensor tensor, ReduceOp op, std::uint64_t tag) final;
  void broadcast(at::Tensor tensor, int root) final;
  void all_gather(at::Tensor output, const at::Tensor& input) final;
  void reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) final;
  void barrier() final;
  void abort(const std::string& reason) final;

  /// Begins an operation. \throws the failure of the group.
  virtual std::unique_ptr<CollectiveWork> start(Post post) = 0;
  /// Performs an operation and waits for its end. \return  the post's output; for kAllocateBucket the bucket, zeroed.
  /// \throws as CollectiveWork::wait().
  virtual at::Tensor finish(Post post) = 0;
  /// As abort(), with any failure. \return  the group's first one. Threads  any.
  virtual Failure fail(const Failure& failure) = 0;

 protected:
  using GroupMember::GroupMember;

 private:
  void move_rows(at::Tensor output, const at::Tensor& input, const RowSizes& sizes) final;
};

/// A bucket of memory that is this rank's alone.
at::Tensor ordinary_bucket(const Call& call);

}  // namespace lrun::detail
