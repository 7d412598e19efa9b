#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/accumulate.h>
#include <lrun/collectives.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/collectives/common/row_sizes.h"

namespace lrun::detail {

/// The call of one rank: everything that has to be equal on all ranks. Trivially copyable without padding that matters,
/// so that it can lie in shared memory.
struct Call {
  enum class Operation : std::int32_t {
    kAllReduce,
    kBroadcast,
    kAllGather,
    kReduceScatter,
    kBarrier,
    kAllocateBucket,
    kAllToAll
  };
  static constexpr std::int32_t kMaxDimensions = 8;

  Operation operation = Operation::kBarrier;
  std::int32_t dtype = 0;  ///< at::ScalarType
  std::int32_t op = -1;    ///< ReduceOp, or -1
  std::int32_t root = -1;
  std::int64_t count = 0;       ///< Elements.
  std::int32_t dimensions = 0;  ///< More than kMaxDimensions are compared by count only.
  std::array<std::int64_t, kMaxDimensions> sizes{};
  std::uint64_t tag = 0;  ///< The caller's own; see Collectives::all_reduce.

  bool operator==(const Call&) const = default;
};

inline void set_shape(Call& call, at::IntArrayRef shape) {
  call.count = c10::multiply_integers(shape);
  call.dimensions = static_cast<std::int32_t>(shape.size());
  call.sizes = {};
  std::ranges::copy(shape.slice(0, std::min(shape.size(), call.sizes.size())), call.sizes.begin());
}

/// The calls of the interface, checked for what one rank can see alone.
/// \throws std::invalid_argument  a tensor that is not contiguous or not in ordinary memory, a dtype that cannot be
///                                reduced, an average of integers, a root outside the group, shapes that do not fit.
Call all_reduce_call(const at::Tensor& tensor, ReduceOp op, std::uint64_t tag);
Call broadcast_call(const at::Tensor& tensor, int root, int world_size);
Call all_gather_call(const at::Tensor& output, const at::Tensor& input, int world_size);
Call reduce_scatter_call(const at::Tensor& output, const at::Tensor& input, ReduceOp op, int world_size);
Call all_to_all_call(const at::Tensor& output, const at::Tensor& input, const RowSizes& sizes);
Call barrier_call();
Call allocate_bucket_call(std::int64_t count, at::ScalarType dtype);

/// 'all_reduce #17'
std::string name_call(Call::Operation operation, std::uint64_t sequence);

/// 'all_reduce #17 of float32[3, 4] (sum)', then the tag, if there is one. \param ranks_above  see name_of_rank().
std::string describe_call(const Call& call, std::uint64_t sequence, const std::vector<int>& ranks_above = {});

/// The first difference between the calls of rank 0 and another one, as a sentence that names both.
std::string describe_mismatch(const Call& first, int rank, const Call& other, std::uint64_t sequence,
                              const std::vector<int>& ranks_above = {});

/// 'all_reduce #17 did not finish within 1000 ms: ranks 1 and 2 did not call it', or, of ranks that did, 'are silent'.
std::string describe_timeout(Call::Operation operation, std::uint64_t sequence, std::chrono::milliseconds timeout,
                             const std::vector<int>& missing, bool called = false);

}  // namespace lrun::detail
