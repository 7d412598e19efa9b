#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/collectives.h>

#include <cstdint>
#include <vector>

namespace lrun::detail {

/// The sizes of what an all_gather of tensors of `sizes` makes: (world size, sizes...).
inline std::vector<std::int64_t> rows_of_ranks(const Collectives& collectives, at::IntArrayRef sizes) {
  std::vector<std::int64_t> rows = {collectives.world_size()};
  rows.insert(rows.end(), sizes.begin(), sizes.end());
  return rows;
}

}  // namespace lrun::detail
