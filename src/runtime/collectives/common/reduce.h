#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/collectives.h>

#include <cstdint>
#include <span>

namespace lrun::detail {

/// Whether reduce() knows the dtype: float16, bfloat16, float32, float64, int32, int64, uint8.
[[nodiscard]] bool can_reduce(at::ScalarType dtype);

/// destinations[d][i] = sources[0][i] op sources[1][i] op … for i in [0, count), every element read once and written
/// once per pointer. kAverage divides the sum by the number of sources.
///
/// Order    sources are taken in order, each element for itself: the result does not depend on how [0, count) is cut,
///          on the alignment or on the processor. float16 and bfloat16 are summed in float32 and rounded once.
/// Aliasing a destination may be one of the sources; otherwise nothing may overlap.
void reduce(at::ScalarType dtype, ReduceOp op, std::span<const void* const> sources,
            std::span<void* const> destinations, std::int64_t count);

}  // namespace lrun::detail
