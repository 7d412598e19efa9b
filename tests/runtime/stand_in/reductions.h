#pragma once

#include <nccl.h>

#include <cstddef>
#include <vector>

namespace lrun::test::stand_in {

using Bytes = std::vector<char>;

/// Of one element; 0: not modelled.
std::size_t size_of(ncclDataType_t type);

/// Element by element over all inputs, in the order of ranks.
Bytes reduce(const std::vector<Bytes>& inputs, ncclDataType_t type, ncclRedOp_t operation);

}  // namespace lrun::test::stand_in
