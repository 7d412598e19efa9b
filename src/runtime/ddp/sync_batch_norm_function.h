#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/collectives.h>

#include <cstdint>

namespace lrun::detail {

/// Mean and variance of each feature over the samples of all ranks.
struct GlobalStatistics {
  at::Tensor mean;
  at::Tensor variance;  ///< Of the values at hand: divided by their number.
  double count = 0;     ///< Values a feature.
};

/// \param input  (samples, features, …), also without samples. Collective.
GlobalStatistics global_statistics(const at::Tensor& input, Collectives& collectives);

/// (input − mean) / sqrt(variance + eps) · weight + bias, with gradients for input, weight and bias; weight and bias
/// may be undefined. Its backward is collective.
at::Tensor normalise(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                     const GlobalStatistics& statistics, double eps, Collectives& collectives);

}  // namespace lrun::detail
