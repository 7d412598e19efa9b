#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/collectives/common/call.h"
#include "runtime/collectives/common/failure.h"
#include "runtime/collectives/common/row_sizes.h"

namespace lrun::detail {

/// If this group is a part of a larger one: the operation of the larger group, which messages name. Value.
struct Part {
  Call::Operation operation = Call::Operation::kBarrier;
  std::uint64_t sequence = 0;
  std::chrono::milliseconds grace{0};  ///< Added to the deadline.
};

/// A call of one rank with its tensors: the same one twice where the operation is in place.
struct Post {
  Call call;
  at::Tensor input;
  at::Tensor output;
  std::optional<Part> part_of = {};
  RowSizes rows = {};  ///< Of an all_to_all.

  /// The operation as messages name it; `sequence` is that of this group.
  [[nodiscard]] Part shown(std::uint64_t sequence) const {
    return part_of.value_or(Part{call.operation, sequence, {}});
  }
};

inline std::byte* output_of(const Post& post) { return static_cast<std::byte*>(post.output.mutable_data_ptr()); }
inline const std::byte* input_of(const Post& post) {
  return static_cast<const std::byte*>(post.input.const_data_ptr());
}

/// The difference between the ranks' calls, if there is one. Every rank has posted.
std::optional<Failure> find_mismatch(const std::vector<std::optional<Post>>& posts, std::uint64_t sequence,
                                     const std::vector<int>& ranks_above);

/// Performs a matching call of all ranks on the calling thread, which can access the memory of all of them.
void perform(const std::vector<std::optional<Post>>& posts);

}  // namespace lrun::detail
