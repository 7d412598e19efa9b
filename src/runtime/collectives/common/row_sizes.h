#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/collectives.h>

#include <cstdint>
#include <vector>

namespace lrun::detail {

/// The rows that a rank sends and receives in an all_to_all: one per rank, in numbers of elements. Value. In its
/// tensors the rows lie one behind the other. They fit: sends[r] here is receives[s] on rank r, if this is rank s.
struct RowSizes {
  std::vector<std::int64_t> sends;
  std::vector<std::int64_t> receives;
  std::vector<std::int64_t> longest;  ///< The shape of the longest row of any rank: equal on all ranks.

  static RowSizes equal(int world_size, at::IntArrayRef row);

  [[nodiscard]] std::int64_t longest_count() const;

  /// The rows of `input` with the length of the longest one: (world size, longest).
  [[nodiscard]] at::Tensor pad(const at::Tensor& input) const;
  /// The rows that this rank receives, out of padded ones.
  void take(const at::Tensor& output, const at::Tensor& padded) const;

  /// Collectives::move_rows(), for those that the group does not know.
  void move(Collectives& group, const at::Tensor& output, const at::Tensor& input) const {
    group.move_rows(output, input, *this);
  }
};

}  // namespace lrun::detail
