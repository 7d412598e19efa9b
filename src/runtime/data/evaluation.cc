#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <lrun/collectives.h>
#include <lrun/error.h>
#include <lrun/evaluation.h>
#include <lrun/exchange.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace lrun {

double weighted_mean(Collectives& collectives, double value, double weight) {
  if (!(weight >= 0) || !std::isfinite(weight)) {
    throw std::invalid_argument("a weight is a finite number of at least 0, not " + std::to_string(weight));
  }
  const at::NoGradGuard no_grad;
  const at::Tensor sums = at::tensor({weight == 0 ? 0.0 : value * weight, weight}, at::kDouble);
  collectives.all_reduce(sums, ReduceOp::kSum)->wait();
  return sums[0].item<double>() / sums[1].item<double>();
}

at::Tensor all_gather_in_order(Collectives& collectives, const at::Tensor& rows) {
  if (!rows.defined() || rows.dim() == 0) {
    throw std::invalid_argument("all_gather_in_order: the tensor has no dimension of samples");
  }
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> parts = all_gather(collectives, rows);
  const auto world_size = static_cast<std::int64_t>(parts.size());
  std::int64_t samples = 0;
  for (const at::Tensor& part : parts) samples += part.size(0);
  std::vector<std::int64_t> sizes = parts[0].sizes().vec();
  sizes[0] = samples;
  at::Tensor all = at::empty(sizes, parts[0].options());
  for (std::int64_t rank = 0; rank < world_size; ++rank) {
    const at::Tensor& part = parts[static_cast<std::size_t>(rank)];
    const std::int64_t expected = (samples - rank + world_size - 1) / world_size;
    if (part.size(0) != expected) {
      throw CollectiveMismatch("all_gather_in_order: rank " + std::to_string(rank) + " has " +
                               std::to_string(part.size(0)) + " of " + std::to_string(samples) +
                               " rows, and would have " + std::to_string(expected) +
                               " as Remainder::kUneven divides them");
    }
    if (expected > 0) all.slice(0, rank, samples, world_size).copy_(part);
  }
  return all;
}

}  // namespace lrun
